#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace sluice {

// What a model may be given in place of texts. Members have the names that they have in RKLLM's C
// structs.

using TokenIds = std::vector<std::int32_t>;

struct EmbedData {
  std::vector<float> embed;  // as many for each token
  std::size_t n_tokens = 0;
};

/// Images and a prompt. Videos are not passed on.
struct MultiModalData {
  std::string prompt;
  std::vector<float> image_embed;  // as many for each token of each image
  std::size_t n_image_tokens = 0;  // of one image
  std::size_t n_image = 1;         // since 1.2.1, as are the next two
  std::size_t image_width = 0;
  std::size_t image_height = 0;
  std::string image_start = {};  // since 1.3.0, as are the next two
  std::string image_end = {};
  std::string image_content = {};
};

using ModelInput = std::variant<TokenIds, EmbedData, MultiModalData>;

struct ModelInputLimits {
  static constexpr std::size_t kBytes = std::size_t{64} << 20U;  // of its numbers
  static constexpr std::size_t kTokens = 16384;                  // the largest context
};

/// How many tokens of the context it takes, besides those of a prompt.
std::size_t count_tokens(const ModelInput& input);

/// The bytes of its numbers and texts.
std::size_t bytes_of(const ModelInput& input);

/// What a model answers with. The order is that of RKLLMInferMode.
enum class Yield : std::uint8_t { text, hidden_states, logits };

}  // namespace sluice

#include "engine/methods/input_call.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/methods/numbers_parameter.hpp"
#include "protocol/parameters.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

constexpr std::array<std::string_view, 4> kInputTypes = {
    "RKLLM_INPUT_PROMPT", "RKLLM_INPUT_TOKEN", "RKLLM_INPUT_EMBED", "RKLLM_INPUT_MULTIMODAL"};
constexpr std::array<std::string_view, 3> kModes = {
    "RKLLM_INFER_GENERATE", "RKLLM_INFER_GET_LAST_HIDDEN_LAYER", "RKLLM_INFER_GET_LOGITS"};
/// The most pixels of a side of an image.
constexpr std::size_t kMostPixels = 65536;

std::unexpected<Error> bad_part(std::string_view name, std::string_view expected) {
  return fail(kInvalidParams,
              "Invalid params: " + std::string(name) + " must be " + std::string(expected));
}

/// Which of an enumeration's names the member has, or its number; the first if it is absent.
Result<std::size_t> enumerator_at(const json::object& from, std::string_view member,
                                  std::span<const std::string_view> names) {
  const json::value* const value = find_parameter(from, member);
  if (value == nullptr) return 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (value->is_string() ? value->get_string() == names[i]
                           : std::cmp_equal(integer_of(*value).value_or(-1), i)) {
      return i;
    }
  }
  std::string known;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) known.append(i + 1 < names.size() ? ", " : " or ");
    known.append(names[i]).append(" (").append(std::to_string(i)).append(")");
  }
  return bad_part(member, known);
}

/// The struct that goes with an input_type.
Result<const json::object*> part_at(const json::object& input, std::string_view name) {
  const json::value* const value = find_parameter(input, name);
  if (value == nullptr || !value->is_object()) {
    return bad_part(name, "an object, which goes with this input_type");
  }
  return &value->get_object();
}

/// Reads a size, which must be there unless `to` has a value.
Result<void> read_size(const json::object& from, std::string_view name, std::size_t least,
                       std::size_t most, std::optional<std::size_t>& to) {
  const json::value* const value = find_parameter(from, name);
  if (value == nullptr && to) return {};
  const std::int64_t size = value == nullptr ? -1 : integer_of(*value).value_or(-1);
  if (size < 0 || std::cmp_less(size, least) || std::cmp_greater(size, most)) {
    return bad_part(name,
                    "an integer from " + std::to_string(least) + " to " + std::to_string(most));
  }
  to = static_cast<std::size_t>(size);
  return {};
}

/// As many finite numbers for each of so many tokens.
Result<std::vector<float>> embeddings_at(const json::object& from, std::string_view name,
                                         std::size_t tokens) {
  std::size_t bytes_left = ModelInputLimits::kBytes;
  Result<std::vector<float>> numbers =
      numbers_parameter<float>(from, name, bytes_left, ModelInputLimits::kBytes);
  if (!numbers) return numbers;
  if (numbers->empty() || numbers->size() % tokens != 0) {
    return bad_part(name, "as many numbers for each of its " + std::to_string(tokens) + " tokens");
  }
  if (!std::ranges::all_of(*numbers, [](float each) { return std::isfinite(each); })) {
    return bad_part(name, "finite numbers");
  }
  return numbers;
}

Result<ModelInput> read_tokens(const json::object& part) {
  std::size_t bytes_left = ModelInputLimits::kBytes;
  Result<TokenIds> ids =
      numbers_parameter<std::int32_t>(part, "input_ids", bytes_left, ModelInputLimits::kBytes);
  if (!ids) return std::unexpected(std::move(ids.error()));
  const bool is_right = !ids->empty() && ids->size() <= ModelInputLimits::kTokens &&
                        std::ranges::all_of(*ids, [](std::int32_t id) { return id >= 0; });
  if (!is_right) {
    return bad_part("input_ids", "1 to " + std::to_string(ModelInputLimits::kTokens) +
                                     " tokens, whose numbers are not negative");
  }
  std::optional<std::size_t> count = ids->size();
  if (Result<void> read = read_size(part, "n_tokens", ids->size(), ids->size(), count); !read) {
    return std::unexpected(std::move(read.error()));
  }
  return *std::move(ids);
}

Result<ModelInput> read_embeddings(const json::object& part) {
  std::optional<std::size_t> tokens;
  if (Result<void> read = read_size(part, "n_tokens", 1, ModelInputLimits::kTokens, tokens);
      !read) {
    return std::unexpected(std::move(read.error()));
  }
  Result<std::vector<float>> numbers = embeddings_at(part, "embed", *tokens);
  if (!numbers) return std::unexpected(std::move(numbers.error()));
  return EmbedData{.embed = *std::move(numbers), .n_tokens = *tokens};
}

Result<ModelInput> read_images(const json::object& part) {
  const json::value* const nested = find_parameter(part, "image");
  if (nested != nullptr && !nested->is_object()) return bad_part("image", "an object");
  if (find_parameter(part, "video") != nullptr) {
    return fail(kInvalidParams, "Invalid params: video is not passed on; leave it out");
  }
  const json::object& image = nested == nullptr ? part : nested->get_object();
  MultiModalData out;
  std::optional<std::size_t> tokens;
  std::optional<std::size_t> images = 1;
  std::optional<std::size_t> width = 0;
  std::optional<std::size_t> height = 0;
  for (const auto& [name, least, most, to] :
       {std::tuple{"n_image", std::size_t{1}, ModelInputLimits::kTokens, &images},
        std::tuple{"n_image_tokens", std::size_t{1}, ModelInputLimits::kTokens, &tokens},
        std::tuple{"image_width", std::size_t{0}, kMostPixels, &width},
        std::tuple{"image_height", std::size_t{0}, kMostPixels, &height}}) {
    if (Result<void> read = read_size(image, name, least, most, *to); !read) {
      return std::unexpected(std::move(read.error()));
    }
  }
  if (*images * *tokens > ModelInputLimits::kTokens) {
    return bad_part("n_image_tokens", "at most " + std::to_string(ModelInputLimits::kTokens) +
                                          " for all images together");
  }
  out.n_image = *images;
  out.n_image_tokens = *tokens;
  out.image_width = *width;
  out.image_height = *height;
  for (const auto& [from, name, to] : {std::tuple{&part, "prompt", &out.prompt},
                                       std::tuple{&image, "image_start", &out.image_start},
                                       std::tuple{&image, "image_end", &out.image_end},
                                       std::tuple{&image, "image_content", &out.image_content}}) {
    Result<std::string> text = text_parameter(*from, name);
    if (!text) return std::unexpected(std::move(text.error()));
    if (text->contains('\0')) return bad_part(name, "a text without the character U+0000");
    *to = *std::move(text);
  }
  if (out.prompt.empty()) return bad_part("prompt", "a text with a tag for each image");
  Result<std::vector<float>> numbers = embeddings_at(image, "image_embed", *images * *tokens);
  if (!numbers) return std::unexpected(std::move(numbers.error()));
  out.image_embed = *std::move(numbers);
  return out;
}

}  // namespace

Result<std::shared_ptr<const ModelInput>> decode_model_input(const json::object& input) {
  const Result<std::size_t> type = enumerator_at(input, "input_type", kInputTypes);
  if (!type) return std::unexpected(type.error());
  if (*type == 0) return nullptr;
  struct Part {
    std::string_view name;
    Result<ModelInput> (*read)(const json::object& part);
  };
  constexpr std::array<Part, 3> kParts = {{{.name = "token_input", .read = read_tokens},
                                           {.name = "embed_input", .read = read_embeddings},
                                           {.name = "multimodal_input", .read = read_images}}};
  const Part& wanted = kParts.at(*type - 1);
  const Result<const json::object*> part = part_at(input, wanted.name);
  if (!part) return std::unexpected(part.error());
  Result<ModelInput> read = wanted.read(**part);
  if (!read) return std::unexpected(std::move(read.error()));
  return std::make_shared<const ModelInput>(*std::move(read));
}

Result<Yield> decode_mode(const json::object& infer) {
  const Result<std::size_t> mode = enumerator_at(infer, "mode", kModes);
  if (!mode) return std::unexpected(mode.error());
  return static_cast<Yield>(*mode);
}

}  // namespace sluice

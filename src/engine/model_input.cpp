#include "engine/model_input.hpp"

namespace sluice {

std::size_t count_tokens(const ModelInput& input) {
  if (const auto* const ids = std::get_if<TokenIds>(&input)) return ids->size();
  if (const auto* const embed = std::get_if<EmbedData>(&input)) return embed->n_tokens;
  const auto& images = std::get<MultiModalData>(input);
  return images.n_image * images.n_image_tokens;
}

std::size_t bytes_of(const ModelInput& input) {
  if (const auto* const ids = std::get_if<TokenIds>(&input)) {
    return ids->size() * sizeof(std::int32_t);
  }
  if (const auto* const embed = std::get_if<EmbedData>(&input)) {
    return embed->embed.size() * sizeof(float);
  }
  const auto& images = std::get<MultiModalData>(input);
  return images.image_embed.size() * sizeof(float) + images.prompt.size() +
         images.image_start.size() + images.image_end.size() + images.image_content.size();
}

}  // namespace sluice

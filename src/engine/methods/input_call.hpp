#pragma once

#include <memory>

#include "core/error.hpp"
#include "engine/model_input.hpp"
#include "json/json.hpp"

namespace sluice {

/// What RKLLMInput has in place of a prompt: token_input, embed_input or multimodal_input, as its
/// input_type says. The members of RKLLMImageInput may stand in `image`, as since 1.3.0, or beside
/// the prompt. Null: it is a prompt. Error -32602 for members that are missing, of a wrong type or
/// size, or not finite.
Result<std::shared_ptr<const ModelInput>> decode_model_input(const json::object& input);

/// `mode` of RKLLMInferParam. Error -32602.
Result<Yield> decode_mode(const json::object& infer);

}  // namespace sluice

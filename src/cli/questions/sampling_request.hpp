#pragma once

#include <cstdint>
#include <string>

#include "cli/questions/terminal_answers.hpp"
#include "core/error.hpp"
#include "engine/engine.hpp"
#include "json/json.hpp"

namespace sluice {

/// The most tokens of an answer to a server, whatever it asks for.
inline constexpr std::int64_t kMaxSampledTokens = 4096;

/// What a server asks the client's model for (2025-11-25, Sampling, params of
/// sampling/createMessage), for our own models: its texts, `systemPrompt`, `maxTokens`,
/// `temperature` and `stopSequences`. Error -32602: content other than text, `tools`, which are not
/// declared, or a value that is not allowed.
Result<GenerationRequest> sampling_request(const json::object& params);

/// The result of sampling/createMessage.
json::object sampling_result(const std::string& text, const std::string& model,
                             Completion::Reason reason);

enum class SamplingConsent : std::uint8_t { refused, once, always };

/// Shows the user all that the model would read, and asks whether `model` is to answer. Enter means
/// no, and so does the end of the input.
SamplingConsent ask_sampling(const GenerationRequest& request, const std::string& model,
                             const AskedUser& user);

}  // namespace sluice

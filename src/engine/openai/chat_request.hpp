#pragma once

#include <string>
#include <string_view>

#include "core/error.hpp"
#include "engine/engine.hpp"
#include "engine/openai/dialect.hpp"

namespace sluice {

/// The body of POST /v1/chat/completions for a request, streamed and with usage. Sampling
/// parameters that have their default value are not sent; the server may have other defaults.
///
/// Such an API wants an id for each call of a tool and for each result. Where a request has none,
/// calls are numbered, and results without an id answer the open calls in their order.
///
/// `server`: names the server as AnswerOptions does, for what it has given with earlier answers.
///
/// Errors: -32602 for what the dialect does not have, and for tools or schemas that are no JSON.
Result<std::string> chat_request(const GenerationRequest& request, std::string_view model,
                                 const Dialect& dialect, std::string_view server = {});

}  // namespace sluice

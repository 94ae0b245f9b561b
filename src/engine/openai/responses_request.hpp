#pragma once

#include <string>
#include <string_view>

#include "core/error.hpp"
#include "engine/engine.hpp"
#include "engine/openai/dialect.hpp"
#include "json/json.hpp"

namespace sluice {

/// The body of POST /v1/responses for a request (OpenAI, Responses; Open Responses), without what
/// depends on the transport. The server is asked to store nothing, so each request has the whole
/// conversation. Sampling parameters that have their default value are not sent. Ids of calls are
/// those of chat_request().
///
/// Errors: -32602 for what this API or the dialect does not have, and for tools or schemas that are
/// no JSON.
Result<json::object> responses_request(const GenerationRequest& request, std::string_view model,
                                       const Dialect& dialect);

}  // namespace sluice

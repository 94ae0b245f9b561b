#pragma once

#include <memory>
#include <string>

#include "core/error.hpp"
#include "engine/engine.hpp"
#include "net/http/url.hpp"
#include "sluice/model.hpp"

namespace sluice {

struct OpenAiOptions {
  Url base;                // of the API, such as https://host/v1
  std::string model = {};  // empty: the only one that the server has
  std::string key = {};    // is sent to this server alone; empty: none
  ModelApi api = ModelApi::chat;
};

/// An engine whose model another server runs: OpenAI, llama-server, vLLM, Ollama or another with
/// one of these APIs. Asks it for its models, and waits for that at most 10 seconds, on a
/// thread that is no event loop's. Uses the proxies of the environment. At most 256 requests are
/// under way, shared among clients as QueueShares says; more are refused with kBusy. A server that
/// says nothing for 5 minutes fails a request.
///
/// A request that the server did not begin to answer, because it was busy (429, 502 to 504) or the
/// connection failed, is sent again, at most twice. A sink that is full stops the reading of its
/// answer, so the server is held up.
///
/// Errors have an HTTP status as their code: kUnauthorized and kForbidden without a key that the
/// server takes, kBadRequest if it has no such model, kBadGateway and kGatewayTimeout if it cannot
/// be reached or speaks something else.
Result<std::unique_ptr<Engine>> make_openai_engine(OpenAiOptions options);

}  // namespace sluice

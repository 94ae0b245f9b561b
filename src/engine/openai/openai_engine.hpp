#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "engine/engine.hpp"
#include "net/http/url.hpp"

namespace sluice {

struct OpenAiOptions {
  Url base;                // of the API, such as https://host/v1
  std::string model = {};  // empty: the only one that the server has
  std::string key = {};    // is sent to this server alone; empty: none
  std::string ca_file = {};
  std::uint32_t max_requests = 256;  // under way
  Duration connect_timeout = std::chrono::seconds(10);
  /// How long the server may be silent about an answer. It may compute a long prompt.
  Duration idle_timeout = std::chrono::minutes(5);
};

/// An engine whose model another server runs: OpenAI, llama-server, vLLM, Ollama or another with
/// POST /v1/chat/completions. Asks it for its models, and waits for that at most
/// `connect_timeout`, on a thread that is no event loop's. Uses the proxies of the environment.
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

#pragma once

#include <cstdint>

namespace sluice {

/// Which API of a model's server is asked.
enum class ModelApi : std::uint8_t {
  chat,       // POST /v1/chat/completions
  responses,  // POST /v1/responses
  websocket,  // the same API over a WebSocket to /v1/responses
};

}  // namespace sluice

#pragma once

#include <stdexcept>
#include <string>

namespace sluice {

/// An outcome a caller must handle: a code of the protocol at hand (JSON-RPC codes, HTTP status
/// codes below them), a sentence that names what was wrong and how to fix it, and optional JSON
/// text for the `data` member. The message may reach a peer: it never carries internals.
///
/// A handler throws it to answer with a JSON-RPC error.
struct Error {
  int code = 0;
  std::string message = {};
  std::string data = {};  // JSON text, or empty; what is no JSON is sent as a JSON string
};

// Sluice's own codes, for what JSON-RPC and MCP have none for: the same in every revision, and
// outside of the range that those keep to themselves (2026-07-28, Base Protocol, Error Codes). What
// handlers make up belongs outside of it too: not between -32768 and -32000.

/// The server cannot take it now: it is shutting down, a queue is full, or a model is not ready.
inline constexpr int kBusy = -31000;
/// It has taken longer than it may.
inline constexpr int kTimedOut = -31001;
/// It was cancelled, which whoever still asks for the result is told.
inline constexpr int kCancelled = -31002;
/// The caller has as much of something as it may, or there is no more of it.
inline constexpr int kLimitReached = -31010;

/// A tool throws it when it failed in a way that the model should read: the result has `isError`
/// and this text.
class ToolError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace sluice

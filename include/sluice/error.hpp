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

/// A tool throws it when it failed in a way that the model should read: the result has `isError`
/// and this text.
class ToolError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace sluice

#pragma once

#include <expected>
#include <string>
#include <utility>

namespace sluice {

/// An outcome a caller must handle: a code of the protocol at hand (JSON-RPC codes in rpc/ and
/// above, HTTP status codes in net/), a sentence that names what was wrong and how to fix it, and
/// optional JSON text for the `data` member. The message may reach a peer: it never carries
/// internals.
struct Error {
  int code = 0;
  std::string message;
  std::string data = {};  // JSON text, or empty
};

template <class T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(int code, std::string message, std::string data = {}) {
  return std::unexpected(Error{code, std::move(message), std::move(data)});
}

}  // namespace sluice

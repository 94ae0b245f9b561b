#pragma once

#include <optional>
#include <string_view>

#include "core/error.hpp"

namespace sluice {

/// An Error of the way to the server `label` behind a proxy as an answer to a client: a JSON-RPC
/// error that keeps the HTTP status, 502 without a connection, as `upstreamStatus` in its data. One
/// that the server itself has answered stays as it is.
Error upstream_error(std::string_view label, const Error& why);

/// Why a session with the server `label` could not be opened, as an answer to a client whose own
/// request the server has not seen: always with the code -32603. The status of a server that does
/// not answer is 504; one that has refused the session with a JSON-RPC error has none.
Error session_error(std::string_view label, const Error& why);

/// The HTTP status that such an answer keeps; nothing for any other error.
std::optional<int> upstream_status(const Error& answer);

}  // namespace sluice

#pragma once

#include <string_view>

namespace sluice {

/// Whether a server says with this reply that it does not know the session of the request: with 404
/// (2025-11-25, Session Management, item 3) or 410, or a text about that and 400, as servers on the
/// official TypeScript SDK once they are started anew, or 401, as older ones on the Rust SDK.
/// `is_answer`: the reply has the id of the request, so it may be the answer to it.
bool is_of_unknown_session(int status, std::string_view body, bool is_answer);

}  // namespace sluice

#pragma once

#include <string>
#include <string_view>

#include "net/client/http_client.hpp"

namespace sluice {

// What error messages say of a reply.

/// `text` if it is short and printable; else nothing.
std::string_view quotable(std::string_view text);

[[nodiscard]] constexpr bool is_redirect(int status) {
  return status / 100 == 3;
}
/// That the server redirects, and where to, without what may be secret in that URL. Redirects are
/// not followed, because they would take what is secret elsewhere.
std::string redirect_of(const HttpReplyHead& head);

/// The reply's media type, or that it has none. Valid as long as the head.
std::string_view media_type_of(const HttpReplyHead& head);

}  // namespace sluice

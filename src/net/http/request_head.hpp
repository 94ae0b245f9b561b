#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "net/http/url.hpp"

namespace sluice {

/// How a request names what it is for (RFC 9112, section 3.2).
enum class TargetForm : std::uint8_t {
  origin,     // path and query, to the server itself
  absolute,   // the URL, to a proxy
  authority,  // host and port, for CONNECT
};

/// The head of a client's request (RFC 9112) without the empty line that ends it: the request line,
/// Host, User-Agent and `headers`, of which `Host` takes the place of that of the URL. `room`:
/// bytes that will be appended, for which it has room. Error: 400 if a part has characters that it
/// must not have.
Result<std::string> make_request_head(std::string_view method, const Url& url,
                                      std::span<const std::pair<std::string, std::string>> headers,
                                      TargetForm form = TargetForm::origin, std::size_t room = 0);

}  // namespace sluice

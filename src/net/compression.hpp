#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace sluice {

/// Whether an Accept-Encoding value allows gzip (RFC 9110, section 12.5.3): by name or by `*`, with
/// a weight above 0 and not below that of identity.
bool accepts_gzip(std::string_view accept_encoding);

/// Compresses `data` with gzip (RFC 1952) and appends the result to `out`. Thread-safe.
void gzip(std::string_view data, std::string& out);

/// Undoes the Content-Encoding of a request's body: gzip, x-gzip, deflate, identity, or a list of
/// at most two of these. Errors: 415 unknown coding, 400 broken data, 413 more than `max_size`
/// bytes come out.
Result<std::string> decode_content(std::string_view content_encoding, std::string_view body,
                                   std::size_t max_size);

/// Compresses one message for permessage-deflate (RFC 7692, section 7.2.1) without context takeover
/// and appends the payload to `out`.
void deflate_message(std::string_view data, std::string& out);

/// The reverse. Errors: 1007 broken data, 1009 more than `max_size` bytes come out.
Result<void> inflate_message(std::string_view data, std::size_t max_size, std::string& out);

}  // namespace sluice

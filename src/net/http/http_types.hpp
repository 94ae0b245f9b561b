#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "net/loop/peer_address.hpp"

namespace sluice {

enum class Method : std::uint8_t { get, head, post, put, del, options, patch, other };

/// Header fields that are recognised while parsing, so that looking them up costs an array index.
enum class KnownHeader : std::uint8_t {
  accept,
  accept_encoding,
  access_control_request_headers,
  access_control_request_method,
  authorization,
  connection,
  content_encoding,
  content_length,
  content_type,
  cookie,
  expect,
  forwarded,
  host,
  last_event_id,
  mcp_method,
  mcp_name,
  mcp_protocol_version,
  mcp_session_id,
  origin,
  sec_websocket_extensions,
  sec_websocket_key,
  sec_websocket_protocol,
  sec_websocket_version,
  transfer_encoding,
  upgrade,
  user_agent,
  x_api_key,
  x_forwarded_for,
  unknown,  // every other field
};
inline constexpr std::size_t kKnownHeaders = static_cast<std::size_t>(KnownHeader::unknown);

/// The size of the longest name of a known header.
inline constexpr std::size_t kLongestKnownHeader = 30;

/// The known header that `name` spells in any case, or `unknown`.
KnownHeader known_header(std::string_view name);

/// Whether two field names or tokens are equal, ASCII case ignored.
bool equals_ignoring_case(std::string_view a, std::string_view b);

/// Whether the comma-separated list `list` has the token `token`, case ignored, parameters after
/// ';' ignored (RFC 9110, section 5.6.1). `token` consists of lower-case letters, digits and
/// `*+-./`.
bool list_has_token(std::string_view list, std::string_view token);

/// The weight of `token` in such a list: its parameter `q`, or 1 without one (RFC 9110, section
/// 12.4.2). Nothing if the list does not have the token.
std::optional<double> list_weight(std::string_view list, std::string_view token);

struct HeaderField {
  std::string_view name;
  std::string_view value;
};

/// A view of some header fields; takes a braced list as an argument.
class HeaderFields {
 public:
  HeaderFields() = default;
  HeaderFields(std::initializer_list<HeaderField> fields)
      : data_(fields.begin()), size_(fields.size()) {}
  HeaderFields(std::span<const HeaderField> fields) : data_(fields.data()), size_(fields.size()) {}

  [[nodiscard]] const HeaderField* begin() const { return data_; }
  [[nodiscard]] const HeaderField* end() const { return data_ + size_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  /// The value of the first field with this name, in any case, or an empty view.
  [[nodiscard]] std::string_view value_of(std::string_view name) const;

 private:
  const HeaderField* data_ = nullptr;
  std::size_t size_ = 0;
};

class HeadVerdict;
class PreparedBody;

/// One request as the handler sees it. Every view points into the connection's buffers and is
/// valid only during HttpHandler::on_request.
struct HttpRequest {
  Method method = Method::get;
  std::string_view method_name;
  std::string_view target;               // as sent, origin-form: path and query
  std::string_view path;                 // as sent, not percent-decoded
  std::string_view query;                // without '?'
  std::string_view authority = {};       // of a target in absolute-form; the same as Host
  int minor_version = 1;                 // of HTTP/1
  std::string_view body;                 // whole, with chunking and content coding removed
  HeadVerdict* verdict = nullptr;        // of HttpHandler::judge(), if it was called
  PreparedBody* prepared = nullptr;      // what HttpHandler::prepare() has made of the body
  bool body_follows = false;             // `body` is empty; see HttpExchange::read_body()
  std::span<const HeaderField> headers;  // in order, as sent, without trailers
  std::array<std::uint8_t, kKnownHeaders> known{};  // 1 + index into headers of the first, or 0
  std::uint32_t repeated_known = 0;                 // bit n: KnownHeader n came more than once
  PeerAddress peer;
  bool tls = false;

  /// The requested host, with or without port: from a target in absolute-form, or else from the
  /// field Host (RFC 9112, section 3.2.2). An empty view (data() == nullptr) if there is neither.
  [[nodiscard]] std::string_view host() const {
    return authority.data() != nullptr ? authority : header(KnownHeader::host);
  }
  /// The value of the first such field, or an empty view (data() == nullptr) if there is none.
  [[nodiscard]] std::string_view header(KnownHeader name) const {
    const std::uint8_t at = known[static_cast<std::size_t>(name)];
    return at == 0 ? std::string_view() : headers[at - 1U].value;
  }
  [[nodiscard]] bool has(KnownHeader name) const {
    return known[static_cast<std::size_t>(name)] != 0;
  }
  [[nodiscard]] bool repeated(KnownHeader name) const {
    return (repeated_known >> static_cast<unsigned>(name) & 1U) != 0;
  }
  /// The same by name, in any case.
  [[nodiscard]] std::string_view header(std::string_view name) const;
  /// The values of all such fields as one list (RFC 9110, section 5.3), or an empty view (data() ==
  /// nullptr) if there is none. `all` keeps it if there are several.
  [[nodiscard]] std::string_view list(KnownHeader name, std::string& all) const;
  /// Whether that list has `token`, in any case.
  [[nodiscard]] bool lists(KnownHeader name, std::string_view token) const;
  /// The raw value of `name` in the query (`a=1&b=2`), or an empty view with data() == nullptr.
  [[nodiscard]] std::string_view query_parameter(std::string_view name) const;
};

/// The reason phrase of a status code ("OK"), or "Unknown".
std::string_view reason_phrase(int status);

}  // namespace sluice

#include "net/http/http_types.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/text/text.hpp"

namespace sluice {
namespace {

struct KnownName {
  std::string_view name;
  KnownHeader header;
};
constexpr std::array<KnownName, kKnownHeaders> kKnownNames = {{
    {"accept", KnownHeader::accept},
    {"accept-encoding", KnownHeader::accept_encoding},
    {"access-control-request-headers", KnownHeader::access_control_request_headers},
    {"access-control-request-method", KnownHeader::access_control_request_method},
    {"authorization", KnownHeader::authorization},
    {"connection", KnownHeader::connection},
    {"content-encoding", KnownHeader::content_encoding},
    {"content-length", KnownHeader::content_length},
    {"content-type", KnownHeader::content_type},
    {"cookie", KnownHeader::cookie},
    {"expect", KnownHeader::expect},
    {"forwarded", KnownHeader::forwarded},
    {"host", KnownHeader::host},
    {"last-event-id", KnownHeader::last_event_id},
    {"mcp-method", KnownHeader::mcp_method},
    {"mcp-name", KnownHeader::mcp_name},
    {"mcp-protocol-version", KnownHeader::mcp_protocol_version},
    {"mcp-session-id", KnownHeader::mcp_session_id},
    {"origin", KnownHeader::origin},
    {"sec-websocket-extensions", KnownHeader::sec_websocket_extensions},
    {"sec-websocket-key", KnownHeader::sec_websocket_key},
    {"sec-websocket-protocol", KnownHeader::sec_websocket_protocol},
    {"sec-websocket-version", KnownHeader::sec_websocket_version},
    {"transfer-encoding", KnownHeader::transfer_encoding},
    {"upgrade", KnownHeader::upgrade},
    {"user-agent", KnownHeader::user_agent},
    {"x-api-key", KnownHeader::x_api_key},
    {"x-forwarded-for", KnownHeader::x_forwarded_for},
}};

/// A hash of a name with few collisions: its length and three of its characters, case ignored.
constexpr std::size_t bucket_of(std::string_view name) {
  const auto letter = [](char c) { return static_cast<unsigned char>(c) | 0x20U; };
  return (name.size() * 31 + letter(name[0]) * 7 + letter(name[name.size() / 2]) * 3 +
          letter(name.back())) %
         256;
}

constexpr std::array<std::uint8_t, 256> make_buckets() {
  // The first name in each bucket. The others are found by searching on from it.
  std::array<std::uint8_t, 256> buckets{};
  for (std::size_t i = kKnownHeaders; i-- > 0;) {
    buckets[bucket_of(kKnownNames[i].name)] = static_cast<std::uint8_t>(i + 1);
  }
  return buckets;
}
constexpr std::array<std::uint8_t, 256> kBuckets = make_buckets();

/// Whether `text` equals `token` in the sizeof(Word) bytes from `at` on, case ignored. Bytes may
/// differ only if they are letters in `token`, and only in the bit that marks a capital.
template <class Word>
bool spells_at(std::string_view text, std::string_view token, std::size_t at) {
  static constexpr Word kEach = static_cast<Word>(0x0101010101010101U);
  Word given = 0;
  Word wanted = 0;
  std::memcpy(&given, text.data() + at, sizeof(Word));
  std::memcpy(&wanted, token.data() + at, sizeof(Word));
  const Word case_bits = (wanted & (kEach * 0x40)) >> 1U;
  return ((given ^ wanted) & ~case_bits) == 0;
}

template <class Word>
bool spells_all(std::string_view text, std::string_view token) {
  const std::size_t last = token.size() - sizeof(Word);
  for (std::size_t at = 0; at < last; at += sizeof(Word)) {
    if (!spells_at<Word>(text, token, at)) return false;
  }
  return spells_at<Word>(text, token, last);
}

/// Whether `text` is `token` in any case. `token` consists of lower-case letters, digits and
/// `*+-./`.
bool spells(std::string_view text, std::string_view token) {
  if (text.size() != token.size()) return false;
  if (text.size() >= sizeof(std::uint64_t)) return spells_all<std::uint64_t>(text, token);
  if (text.size() >= sizeof(std::uint32_t)) return spells_all<std::uint32_t>(text, token);
  return equals_ignoring_case(text, token);
}

double weight_of(std::string_view parameters) {
  while (!parameters.empty()) {
    const std::size_t end = parameters.find(';');
    const std::string parameter(trim(parameters.substr(0, end)));
    if (parameter.starts_with("q=") || parameter.starts_with("Q=")) {
      return std::strtod(parameter.c_str() + 2, nullptr);
    }
    if (end == std::string_view::npos) break;
    parameters.remove_prefix(end + 1);
  }
  return 1;
}

}  // namespace

KnownHeader known_header(std::string_view name) {
  if (name.empty() || name.size() > kLongestKnownHeader) return KnownHeader::unknown;
  const std::size_t bucket = bucket_of(name);
  for (std::size_t at = kBuckets[bucket]; at != 0 && at <= kKnownHeaders; ++at) {
    const KnownName& known = kKnownNames[at - 1];
    if (spells(name, known.name)) return known.header;
  }
  return KnownHeader::unknown;
}

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && to_lower(a[i]) != to_lower(b[i])) return false;
  }
  return true;
}

bool list_has_token(std::string_view list, std::string_view token) {
  return list_weight(list, token).has_value();
}

std::optional<double> list_weight(std::string_view list, std::string_view token) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    const std::string_view item = list.substr(0, comma);
    const std::size_t semicolon = item.find(';');
    if (spells(trim(item.substr(0, semicolon)), token)) {
      return semicolon == std::string_view::npos ? 1 : weight_of(item.substr(semicolon + 1));
    }
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return std::nullopt;
}

std::string_view HttpRequest::list(KnownHeader name, std::string& all) const {
  if (!repeated(name)) return header(name);
  all.clear();
  for (const HeaderField& field : headers) {
    if (known_header(field.name) == name) all.append(field.value).append(", ");
  }
  return all;
}

bool HttpRequest::lists(KnownHeader name, std::string_view token) const {
  std::string all;
  return list_has_token(list(name, all), token);
}

std::string_view HeaderFields::value_of(std::string_view name) const {
  for (const HeaderField& field : *this) {
    if (equals_ignoring_case(field.name, name)) return field.value;
  }
  return {};
}

std::string_view HttpRequest::header(std::string_view name) const {
  return HeaderFields(headers).value_of(name);
}

std::string_view HttpRequest::query_parameter(std::string_view name) const {
  std::string_view rest = query;
  while (!rest.empty()) {
    const std::size_t end = rest.find('&');
    const std::string_view pair = rest.substr(0, end);
    const std::size_t equals = pair.find('=');
    if (pair.substr(0, equals) == name) {
      return equals == std::string_view::npos ? pair.substr(pair.size()) : pair.substr(equals + 1);
    }
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  return {};
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 101:
      return "Switching Protocols";
    case 200:
      return "OK";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 426:
      return "Upgrade Required";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

}  // namespace sluice

#include "net/http/http_parser.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/text/text.hpp"
#include "net/http/head_scanner.hpp"

namespace sluice {
namespace {

using Outcome = HeadScanner::Outcome;

Method method_of(std::string_view name) {
  if (name == "POST") return Method::post;
  if (name == "GET") return Method::get;
  if (name == "HEAD") return Method::head;
  if (name == "DELETE") return Method::del;
  if (name == "OPTIONS") return Method::options;
  if (name == "PUT") return Method::put;
  if (name == "PATCH") return Method::patch;
  return Method::other;
}

/// Removes the scheme and authority, which a client may send (RFC 9112, section 3.2.2), from the
/// front of `target`. Returns the authority, or a view without data if there is none.
std::string_view take_authority(std::string_view& target) {
  if (target.starts_with('/')) return {};
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!equals_ignoring_case(target.substr(0, scheme.size()), scheme)) continue;
    const std::size_t path = std::min(target.find_first_of("/?", scheme.size()), target.size());
    const std::string_view authority = target.substr(scheme.size(), path - scheme.size());
    target = path == target.size() ? "/" : target.substr(path);
    return authority;
  }
  return {};
}

/// The parser's result after a step that is not ok: an error, or false to wait for more input.
Result<bool> stopped(Outcome outcome, const char* what_is_bad) {
  if (outcome == Outcome::incomplete) return false;
  return fail(400, std::string("Malformed HTTP request: ") + what_is_bad);
}

Result<int> minor_version(std::string_view text) {
  if (text == "HTTP/1.1") return 1;
  if (text == "HTTP/1.0") return 0;
  // A higher minor version is treated as the highest known one (RFC 9110, section 2.5).
  if (text.size() == 8 && text.starts_with("HTTP/1.") && text[7] >= '2' && text[7] <= '9') return 1;
  if (text.size() > 5 && text.starts_with("HTTP/") &&
      text.find_first_not_of("0123456789.", 5) == std::string_view::npos) {
    return fail(505, "Only HTTP/1 is spoken here");
  }
  return fail(400, "Malformed HTTP request: the first line does not end with a version");
}

/// True to go on, false to wait for more input.
Result<bool> read_request_line(HeadScanner& scanner, const HttpParserLimits& limits,
                               HttpRequest& request, std::string_view input) {
  Outcome outcome = scanner.token(' ', request.method_name);
  if (outcome != Outcome::ok) return stopped(outcome, "no method");
  const std::size_t start = scanner.at();
  outcome = scanner.target(request.target);
  // A target that is too long is refused before its line has ended.
  const std::size_t size = outcome == Outcome::ok ? request.target.size() : input.size() - start;
  if (outcome != Outcome::bad && size > limits.uri) {
    return fail(414,
                "The request's target is longer than " + std::to_string(limits.uri) + " bytes");
  }
  if (outcome != Outcome::ok) {
    return stopped(outcome, "the target holds a character that must be escaped");
  }
  std::string_view version;
  outcome = scanner.line(version);
  if (outcome != Outcome::ok) return stopped(outcome, "the first line does not end with CRLF");
  const Result<int> minor = minor_version(version);
  if (!minor) return std::unexpected(minor.error());
  request.minor_version = *minor;
  std::string_view target = request.target;
  request.authority = take_authority(target);
  const std::size_t question = target.find('?');
  request.path = target.substr(0, question);
  if (question != std::string_view::npos) request.query = target.substr(question + 1);
  request.method = method_of(request.method_name);
  return true;
}

void note_known(HttpRequest& request, KnownHeader known, std::size_t index) {
  std::uint8_t& slot = request.known[static_cast<std::size_t>(known)];
  if (slot == 0) {
    slot = static_cast<std::uint8_t>(index + 1);
  } else {
    request.repeated_known |= 1U << static_cast<unsigned>(known);
  }
}

/// True to go on, false to wait for more input.
Result<bool> read_fields(HeadScanner& scanner, std::span<HeaderField> fields,
                         HttpRequest& request) {
  for (std::size_t count = 0;; ++count) {
    bool is_end = false;
    Outcome outcome = scanner.end(is_end);
    if (outcome != Outcome::ok) return stopped(outcome, "a line does not end with CRLF");
    request.headers = fields.first(count);
    if (is_end) return true;
    if (scanner.is_folded()) {
      return fail(400, "Folded header lines are not allowed (RFC 9112, section 5.2)");
    }
    if (count == fields.size()) {
      return fail(431, "Too many header fields; at most " + std::to_string(fields.size()));
    }
    HeaderField& field = fields[count];
    const KnownHeader known = scanner.known_name(field.name);
    if (known == KnownHeader::unknown) {
      outcome = scanner.token(':', field.name);
      if (outcome != Outcome::ok) return stopped(outcome, "a header line has no name before a ':'");
    } else {
      note_known(request, known, count);
    }
    outcome = scanner.line(field.value);
    if (outcome != Outcome::ok) return stopped(outcome, "a control character in a header line");
    field.value = trim(field.value);
  }
}

/// Whether the connection is to stay open after this request (RFC 9112, section 9.3).
bool keeps_alive(const HttpRequest& request) {
  if (!request.has(KnownHeader::connection)) return request.minor_version == 1;
  bool closes = false;
  bool keeps = false;
  for (const HeaderField& field : request.headers) {
    if (!equals_ignoring_case(field.name, "connection")) continue;
    closes = closes || list_has_token(field.value, "close");
    keeps = keeps || list_has_token(field.value, "keep-alive");
  }
  return !closes && (request.minor_version == 1 || keeps);
}

/// Finds out how the body is delimited. Refuses what could be read in two ways (RFC 9112, section
/// 6.3).
Result<void> find_framing(const HttpParserLimits& limits, HttpRequestHead& head) {
  const HttpRequest& request = head.request;
  const std::string_view coding = request.header(KnownHeader::transfer_encoding);
  const std::string_view length = request.header(KnownHeader::content_length);
  if (coding.data() != nullptr) {
    if (length.data() != nullptr) return fail(400, "Both Content-Length and Transfer-Encoding");
    if (request.repeated(KnownHeader::transfer_encoding)) {
      return fail(400, "Transfer-Encoding came more than once");
    }
    if (request.minor_version == 0) {
      return fail(400, "HTTP/1.0 has no Transfer-Encoding (RFC 9112, section 6.1)");
    }
    if (!equals_ignoring_case(coding, "chunked")) {
      return fail(501, "Transfer-Encoding: only chunked is known here");
    }
    head.framing = BodyFraming::chunked;
    return {};
  }
  if (length.data() == nullptr) return {};
  if (request.repeated(KnownHeader::content_length)) {
    return fail(400, "Content-Length came more than once");
  }
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(length.data(), length.data() + length.size(), value);
  if (error == std::errc::invalid_argument || end != length.data() + length.size()) {
    return fail(400, "Content-Length must be one number");
  }
  if (error != std::errc() || value > limits.body) {
    return fail(413, "The request's body is longer than " + std::to_string(limits.body) +
                         " bytes (max_message, or --max-body of sluice serve)");
  }
  if (value > 0) head.framing = BodyFraming::length;
  head.content_length = value;
  return {};
}

/// Checks what concerns the head as a whole.
Result<void> check_head(const HttpParserLimits& limits, HttpRequestHead& head) {
  const HttpRequest& request = head.request;
  if (request.minor_version == 1 && !request.has(KnownHeader::host)) {
    return fail(400, "The Host header is missing (RFC 9112, section 3.2)");
  }
  if (request.repeated(KnownHeader::host)) return fail(400, "The Host header came more than once");
  // A proxy in front of the server may have looked at either.
  if (request.authority.data() != nullptr && request.has(KnownHeader::host) &&
      !equals_ignoring_case(request.authority, request.header(KnownHeader::host))) {
    return fail(400, "The request's target and its Host header name different hosts");
  }
  const std::string_view expect = request.header(KnownHeader::expect);
  if (expect.data() != nullptr && !equals_ignoring_case(expect, "100-continue")) {
    return fail(417, "Expect: only 100-continue is known here");
  }
  head.expects_continue = expect.data() != nullptr && request.minor_version == 1;
  head.keep_alive = keeps_alive(request);
  return find_framing(limits, head);
}

}  // namespace

Result<void> HttpHeadParser::parse(std::string_view input, bool& found, HttpRequestHead& head) {
  found = false;
  head = HttpRequestHead{};
  const std::string_view window = input.substr(0, limits_.header_bytes);
  HeadScanner scanner(window);
  Result<bool> read = read_request_line(scanner, limits_, head.request, window);
  if (read && *read) {
    const std::span<HeaderField> fields(fields_.data(), std::min(limits_.headers, fields_.size()));
    read = read_fields(scanner, fields, head.request);
  }
  if (!read) return std::unexpected(std::move(read.error()));
  if (!*read) {
    if (input.size() < limits_.header_bytes) return {};
    return fail(431, "The request's header is longer than " + std::to_string(limits_.header_bytes) +
                         " bytes");
  }
  head.size = scanner.at();
  if (Result<void> sound = check_head(limits_, head); !sound) return sound;
  found = true;
  return {};
}

}  // namespace sluice

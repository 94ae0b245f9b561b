#include "net/http_parser.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>

namespace sluice {
namespace {

namespace http = boost::beast::http;
using boost::beast::string_view;
using boost::system::error_code;

std::string_view view(string_view text) {
  return {text.data(), text.size()};
}

Method method_of(http::verb verb) {
  switch (verb) {
    case http::verb::get:
      return Method::get;
    case http::verb::head:
      return Method::head;
    case http::verb::post:
      return Method::post;
    case http::verb::put:
      return Method::put;
    case http::verb::delete_:
      return Method::del;
    case http::verb::options:
      return Method::options;
    case http::verb::patch:
      return Method::patch;
    default:
      return Method::other;
  }
}

/// Why a head was refused, beyond what Beast says.
enum class Refusal : std::uint8_t { none, too_many_headers, folded, transfer_coding };

/// Collects a head's parts as views into the input.
class HeadCollector final : public http::basic_parser<true> {
 public:
  HeadCollector(std::string_view input, std::span<HeaderField> fields, std::size_t max_headers,
                HttpRequestHead& head)
      : input_(input), fields_(fields), max_headers_(max_headers), head_(&head) {}

  [[nodiscard]] Refusal refusal() const { return refusal_; }
  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  void on_request_impl(http::verb verb, string_view method, string_view target, int version,
                       error_code& /*error*/) override {
    head_->request.method = method_of(verb);
    head_->request.method_name = view(method);
    head_->request.target = view(target);
    head_->request.minor_version = version - 10;
  }
  void on_response_impl(int /*code*/, string_view /*reason*/, int /*version*/,
                        error_code& /*error*/) override {}

  void on_field_impl(http::field /*field*/, string_view name, string_view value,
                     error_code& error) override {
    if (count_ >= max_headers_ || count_ >= fields_.size()) {
      return refuse(Refusal::too_many_headers, error);
    }
    // Beast joins folded lines in a buffer of its own; RFC 9112, section 5.2 lets us refuse them.
    if (!value.empty() &&
        (value.data() < input_.data() || value.data() >= input_.data() + input_.size())) {
      return refuse(Refusal::folded, error);
    }
    const HeaderField field{view(name), view(value)};
    const KnownHeader known = known_header(field.name);
    if (known != KnownHeader::unknown) {
      std::uint8_t& slot = head_->request.known[static_cast<std::size_t>(known)];
      if (slot == 0) {
        slot = static_cast<std::uint8_t>(count_ + 1);
      } else {
        head_->request.repeated_known |= 1U << static_cast<unsigned>(known);
      }
      if (known == KnownHeader::transfer_encoding &&
          !equals_ignoring_case(field.value, "chunked")) {
        return refuse(Refusal::transfer_coding, error);
      }
    }
    fields_[count_++] = field;
  }

  void on_header_impl(error_code& /*error*/) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>& /*length*/,
                         error_code& /*error*/) override {}
  std::size_t on_body_impl(string_view /*body*/, error_code& /*error*/) override { return 0; }
  void on_chunk_header_impl(std::uint64_t /*size*/, string_view /*extensions*/,
                            error_code& /*error*/) override {}
  std::size_t on_chunk_body_impl(std::uint64_t /*remain*/, string_view /*body*/,
                                 error_code& /*error*/) override {
    return 0;
  }
  void on_finish_impl(error_code& /*error*/) override {}

  void refuse(Refusal why, error_code& error) {
    refusal_ = why;
    error = http::error::bad_value;
  }

  std::string_view input_;
  std::span<HeaderField> fields_;
  std::size_t max_headers_;
  HttpRequestHead* head_;
  std::size_t count_ = 0;
  Refusal refusal_ = Refusal::none;
};

std::unexpected<Error> refused(Refusal why, const HttpParserLimits& limits) {
  switch (why) {
    case Refusal::too_many_headers:
      return fail(431, "Too many header fields; at most " + std::to_string(limits.headers));
    case Refusal::folded:
      return fail(400, "Folded header lines are not allowed (RFC 9112, section 5.2)");
    case Refusal::transfer_coding:
      return fail(501, "Transfer-Encoding: only chunked is known here");
    case Refusal::none:
      break;
  }
  return fail(400, "Bad request");
}

/// Whether the request line ends as one of another HTTP version does.
bool names_other_version(std::string_view input) {
  const std::string_view line = input.substr(0, input.find("\r\n"));
  const std::size_t space = line.rfind(' ');
  if (space == std::string_view::npos || !line.substr(space).starts_with(" HTTP/")) return false;
  const std::string_view version = line.substr(space + 6);
  return !version.empty() && version != "1.0" && version != "1.1" &&
         version.find_first_not_of("0123456789.") == std::string_view::npos;
}

std::unexpected<Error> malformed(const error_code& error, std::string_view input,
                                 const HttpParserLimits& limits) {
  if (error == http::error::header_limit) {
    return fail(431, "The request's header is longer than " + std::to_string(limits.header_bytes) +
                         " bytes");
  }
  if (error == http::error::bad_version && names_other_version(input)) {
    return fail(505, "Only HTTP/1.0 and HTTP/1.1 are spoken here");
  }
  return fail(400, "Malformed HTTP request: " + error.message());
}

/// A target without the scheme and authority that a client may send (RFC 9112, section 3.2.2).
std::string_view origin_form(std::string_view target) {
  if (target.starts_with('/')) return target;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!equals_ignoring_case(target.substr(0, scheme.size()), scheme)) continue;
    const std::size_t path = target.find_first_of("/?", scheme.size());
    return path == std::string_view::npos ? "/" : target.substr(path);
  }
  return target;
}

}  // namespace

Result<void> HttpHeadParser::parse(std::string_view input, bool& found, HttpRequestHead& head) {
  found = false;
  head = HttpRequestHead{};
  // A URI that is too long says so before its line has ended.
  if (input.size() > limits_.uri) {
    const std::size_t space = input.find(' ');
    const std::size_t end =
        input.find_first_of(" \r\n", space == std::string_view::npos ? 0 : space + 1);
    const std::size_t start = space == std::string_view::npos ? 0 : space + 1;
    if (std::min(end, input.size()) - start > limits_.uri) {
      return fail(414,
                  "The request's target is longer than " + std::to_string(limits_.uri) + " bytes");
    }
  }
  HeadCollector parser(input, fields_, limits_.headers, head);
  parser.header_limit(static_cast<std::uint32_t>(limits_.header_bytes));
  parser.body_limit(boost::none);
  parser.skip(false);
  error_code error;
  const std::size_t used = parser.put(boost::asio::buffer(input.data(), input.size()), error);
  if (error == http::error::need_more) {
    if (input.size() >= limits_.header_bytes)
      return malformed(http::error::header_limit, input, limits_);
    return {};
  }
  if (parser.refusal() != Refusal::none) return refused(parser.refusal(), limits_);
  if (error) return malformed(error, input, limits_);
  if (!parser.is_header_done()) return {};
  // Beast counts without the empty line.
  if (used > limits_.header_bytes) return malformed(http::error::header_limit, input, limits_);

  HttpRequest& request = head.request;
  request.headers = std::span<const HeaderField>(fields_.data(), parser.count());
  const std::string_view target = origin_form(request.target);
  const std::size_t question = target.find('?');
  request.path = target.substr(0, question);
  if (question != std::string_view::npos) request.query = target.substr(question + 1);
  if (request.minor_version == 1 && !request.has(KnownHeader::host)) {
    return fail(400, "The Host header is missing (RFC 9112, section 3.2)");
  }
  if (request.repeated(KnownHeader::host)) return fail(400, "The Host header came more than once");
  head.size = used;
  head.keep_alive = parser.keep_alive();
  if (request.repeated(KnownHeader::content_length)) {
    return fail(400, "Content-Length came more than once");
  }
  // Beast takes "5, 5" for 5 (RFC 9112, section 6.3 allows both).
  if (request.header(KnownHeader::content_length).find(',') != std::string_view::npos) {
    return fail(400, "Content-Length must be one number");
  }
  if (parser.chunked()) {
    if (request.minor_version == 0) {
      return fail(400, "HTTP/1.0 has no Transfer-Encoding (RFC 9112, section 6.1)");
    }
    head.framing = BodyFraming::chunked;
  } else if (const auto length = parser.content_length(); length && *length > 0) {
    if (*length > limits_.body) {
      return fail(413, "The request's body is longer than " + std::to_string(limits_.body) +
                           " bytes (max-body)");
    }
    head.framing = BodyFraming::length;
    head.content_length = static_cast<std::size_t>(*length);
  }
  const std::string_view expect = request.header(KnownHeader::expect);
  if (expect.data() != nullptr) {
    if (!equals_ignoring_case(expect, "100-continue")) {
      return fail(417, "Expect: only 100-continue is known here");
    }
    head.expects_continue = request.minor_version >= 1;
  }
  found = true;
  return {};
}

}  // namespace sluice

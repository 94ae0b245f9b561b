#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "net/http/http_types.hpp"

namespace sluice {

struct HttpParserLimits {
  std::size_t header_bytes = 16U << 10U;
  std::size_t headers = 100;
  std::size_t uri = 8U << 10U;
  std::size_t body = 4U << 20U;
};

/// How a request's body is delimited (RFC 9112, section 6.3).
enum class BodyFraming : std::uint8_t { none, length, chunked };

/// A request's head as found at the start of a buffer. The views point into that buffer and into
/// the parser that found them, until its next parse.
struct HttpRequestHead {
  HttpRequest request;   // without its body and peer
  std::size_t size = 0;  // bytes of the head
  BodyFraming framing = BodyFraming::none;
  std::size_t content_length = 0;
  bool keep_alive = true;
  bool expects_continue = false;
};

/// Parses request heads (RFC 9112) from a buffer that holds them whole. Keeps no state between
/// calls, so one parser serves all connections of a loop. Not thread-safe.
class HttpHeadParser {
 public:
  explicit HttpHeadParser(HttpParserLimits limits) : limits_(limits) {}

  /// Finds the head at the start of `input`. `found` is false if it is not complete yet. The
  /// error's code is the HTTP status: 400, 413, 414, 417, 431, 501 or 505.
  Result<void> parse(std::string_view input, bool& found, HttpRequestHead& head);

  [[nodiscard]] const HttpParserLimits& limits() const { return limits_; }

  static constexpr std::size_t kMaxHeaders = 250;

 private:
  HttpParserLimits limits_;
  std::array<HeaderField, kMaxHeaders> fields_;
};

/// Collects one request's body as it arrives. Decodes the chunked coding (RFC 9112, section 7.1)
/// and skips the trailers. Strict: lines end with CRLF, chunk extensions and trailers are bounded.
class BodyReader {
 public:
  /// For a chunked body of at most `max_body` bytes.
  explicit BodyReader(std::size_t max_body) : max_body_(max_body) {}
  /// For a body of `length` bytes.
  static BodyReader of_length(std::size_t length) {
    BodyReader reader(length);
    reader.remaining_ = length;
    reader.state_ = State::content;
    return reader;
  }

  /// Takes bytes that follow the head. Returns how many it used: all of them, or those up to the
  /// body's end. The error's code is 400, 413 or 431; the reader cannot be used after an error.
  Result<std::size_t> feed(std::string_view input);
  [[nodiscard]] bool done() const { return state_ == State::done; }
  [[nodiscard]] const std::string& body() const { return body_; }
  /// Takes what has arrived since the last call, for a body that is not kept.
  [[nodiscard]] std::string take_body() { return std::exchange(body_, {}); }

 private:
  enum class State : std::uint8_t {
    size_first,  // the first digit of a chunk's size
    size,
    size_space,  // between a size and its extension
    extension,
    size_lf,
    data,
    data_cr,
    data_lf,
    trailer_first,  // the first character of a trailer line, or the CR of the empty line
    trailer,
    trailer_lf,
    end_lf,
    content,  // of a body that is not chunked
    done,
  };
  Result<void> take(char c);
  Result<void> take_size(char c);
  Result<void> take_trailer(char c);

  std::size_t max_body_;
  std::string body_;
  std::size_t remaining_ = 0;  // of the chunk or the content
  std::size_t skipped_ = 0;    // bytes of extensions and trailers
  State state_ = State::size_first;
};

}  // namespace sluice

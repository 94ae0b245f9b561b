#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "core/error.hpp"
#include "net/http/http_types.hpp"

namespace sluice {

/// Receives what a parser finds in a reply.
class HttpReplySink {
 public:
  virtual ~HttpReplySink() = default;
  /// The head. The views are valid during the call. Return false to stop parsing.
  virtual bool on_head(int status, std::span<const HeaderField> headers) = 0;
  /// A piece of the body without its transfer coding. Return false to stop parsing.
  virtual bool on_body(std::string_view bytes) = 0;
};

/// Parses one reply (RFC 9112) that arrives in pieces of any size, and skips the interim replies
/// (1xx) before it. The sink may not destroy the parser.
class HttpReplyParser {
 public:
  /// `head_request`: the reply has no body whatever its head says. The sink outlives the parser.
  HttpReplyParser(HttpReplySink& sink, std::size_t max_head, bool head_request);
  ~HttpReplyParser();

  /// Takes the next bytes. The error's code is 502. After an error, or when the sink has stopped
  /// it, the parser cannot be used.
  Result<void> feed(std::string_view bytes);
  /// The connection has ended. An error unless the reply is complete, or is one that ends with the
  /// connection.
  Result<void> end();

  [[nodiscard]] bool done() const;
  /// Once done: whether the connection may carry another request.
  [[nodiscard]] bool keep_alive() const;
  /// Once done: the bytes after the reply. Valid until the next call.
  [[nodiscard]] std::string_view rest() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice

#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "core/error.hpp"
#include "net/http/http_types.hpp"

namespace sluice {

/// What a parser finds in a reply.
class HttpReplySink {
 public:
  virtual ~HttpReplySink() = default;
  /// The head; the views are valid during the call. False: stop parsing.
  virtual bool on_head(int status, std::span<const HeaderField> headers) = 0;
  /// A piece of the body without its transfer coding. False: stop parsing.
  virtual bool on_body(std::string_view bytes) = 0;
};

/// Parses one reply (RFC 9112) that comes in pieces of any size, and skips the interim replies
/// (1xx) before it. The sink may not destroy the parser.
class HttpReplyParser {
 public:
  /// `head_request`: the reply has no body whatever its head says. The sink outlives the parser.
  HttpReplyParser(HttpReplySink& sink, std::size_t max_head, bool head_request);
  ~HttpReplyParser();

  /// Takes the next bytes. The error's code is 502. After an error, or when the sink has said stop,
  /// it is of no further use.
  Result<void> feed(std::string_view bytes);
  /// The connection has ended: fine after a whole reply or one that only this could end.
  Result<void> end();

  [[nodiscard]] bool done() const;
  /// Once done: whether the connection may carry another request.
  [[nodiscard]] bool keep_alive() const;
  /// Once done: what came behind the reply. Valid until the next call.
  [[nodiscard]] std::string_view rest() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice

#pragma once

// Middleware: code that runs around every request, whatever its method and transport.
//
//   server.use([&](Request& request) -> Task<> {
//     if (!co_await allowed(request.principal())) throw Error{403, "Not for you"};
//     const RequestEnd end = co_await request.next();
//     count(request.method(), end.error);
//   });

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "sluice/detail/loop_backend.hpp"
#include "sluice/principal.hpp"
#include "sluice/request_loop.hpp"
#include "sluice/task.hpp"

namespace sluice {

/// How a request ended.
struct RequestEnd {
  std::optional<int> error = {};  // the code of the JSON-RPC error; empty: a result, or cancelled
  bool cancelled = false;         // there was no answer, because nobody waits for it any more
};

namespace detail {

struct RequestInfo {
  std::string method;
  std::string name;
  Principal principal;
  std::string revision;
};

/// A request as one middleware sees it.
class RequestBackend {
 public:
  virtual ~RequestBackend() = default;
  virtual LoopBackend& loop() = 0;
  virtual const RequestInfo& info() const = 0;
  virtual void next(std::shared_ptr<Awaiting<RequestEnd>::Arrival> end) = 0;
};

}  // namespace detail

/// A request on its way to its handler. Valid while the middleware runs. Not thread-safe: use it
/// only on the event loop of the request.
class Request : public RequestLoop {
 public:
  explicit Request(detail::RequestBackend& backend)
      : RequestLoop(backend.loop()), backend_(&backend) {}

  const std::string& method() const { return backend_->info().method; }  // such as "tools/call"
  /// What the request is about: the name of the tool or prompt, the URI of the resource, or the id
  /// of the task. Empty for other methods.
  const std::string& name() const { return backend_->info().name; }
  // As Call::principal() and Call::is_isolated().
  const std::string& principal() const { return backend_->info().principal.id; }
  bool is_isolated() const { return backend_->info().principal.isolated; }
  /// The MCP revision, such as "2026-07-28". Empty for the stream methods (docs/streaming.md).
  const std::string& revision() const { return backend_->info().revision; }

  /// Passes the request on to the next middleware, or to its handler. Call it once. Awaiting what
  /// it returns waits for the end of the request; that is optional.
  Awaiting<RequestEnd> next() {
    auto end = std::make_shared<Awaiting<RequestEnd>::Arrival>(backend_->loop());
    backend_->next(end);
    return Awaiting<RequestEnd>(std::move(end));
  }

 private:
  detail::RequestBackend* backend_;
};

/// Called for each request, on the event loop of the request, which it must not block. Several
/// loops may call it at the same time.
///
/// Errors: an exception that it throws before the request has ended becomes the answer. An Error is
/// sent as it is. Any other exception is logged, and the caller gets error -32603 (internal error);
/// so does the caller if the middleware ends without calling next().
///
/// Until it calls next(), the request counts towards its client's limit of calls. If the request is
/// cancelled, the coroutine is destroyed where it is suspended. After the end of the request it may
/// go on waiting while its client has room for another call; if there is none, it is destroyed.
using Middleware = std::function<Task<>(Request& request)>;

}  // namespace sluice

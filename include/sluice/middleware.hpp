#pragma once

// What stands around every request, whatever its method and its transport.
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

/// How a request has ended.
struct RequestEnd {
  std::optional<int> error = {};  // the code of the JSON-RPC error that answered it; none: a result
  bool cancelled = false;         // there is no answer: nobody waits for it any more
};

namespace detail {

struct RequestInfo {
  std::string method;
  std::string name;
  Principal principal;
  std::string revision;
};

/// A request as one of its middleware sees it.
class RequestBackend {
 public:
  virtual ~RequestBackend() = default;
  virtual LoopBackend& loop() = 0;
  virtual const RequestInfo& info() const = 0;
  virtual void next(std::shared_ptr<Awaiting<RequestEnd>::Arrival> end) = 0;
};

}  // namespace detail

/// A request on its way to what answers it. Belongs to the event loop of the request.
class Request : public RequestLoop {
 public:
  explicit Request(detail::RequestBackend& backend)
      : RequestLoop(backend.loop()), backend_(&backend) {}

  const std::string& method() const { return backend_->info().method; }  // such as "tools/call"
  /// Of the tool or prompt, the URI of the resource, the id of the task; or empty.
  const std::string& name() const { return backend_->info().name; }
  /// As Call::principal() and Call::is_isolated().
  const std::string& principal() const { return backend_->info().principal.id; }
  bool is_isolated() const { return backend_->info().principal.isolated; }
  /// Empty for the stream methods (docs/streaming.md).
  const std::string& revision() const { return backend_->info().revision; }

  /// Lets the request go on, once, and waits for its end. Whoever does not wait does not hear of
  /// it.
  Awaiting<RequestEnd> next() {
    auto end = std::make_shared<Awaiting<RequestEnd>::Arrival>(backend_->loop());
    backend_->next(end);
    return Awaiting<RequestEnd>(std::move(end));
  }

 private:
  detail::RequestBackend* backend_;
};

/// Called for each request, on its loop. What it throws before the request has ended answers it:
/// an Error as it is; anything else is logged, and the caller is told of an internal error. So is
/// one that ends without next(). While it waits before next() the request counts among the calls
/// of its client, and one that is cancelled destroys it there. After the end it may go on waiting,
/// as long as that client has room for another call.
using Middleware = std::function<Task<>(Request& request)>;

}  // namespace sluice

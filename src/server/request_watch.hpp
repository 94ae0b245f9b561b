#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/log_limit.hpp"
#include "sluice/hooks.hpp"

namespace sluice {

/// Tells the hooks how a request ended; that it was cancelled, if nobody says otherwise.
class RequestWatch {
 public:
  /// `hooks` and `clock` outlive the watch.
  RequestWatch(const std::vector<AfterRequest>& hooks, const RequestInfo& request,
               const Clock& clock)
      : hooks_(&hooks),
        clock_(&clock),
        begun_(clock.now()),
        method_(request.method),
        name_(request.name),
        principal_(request.principal),
        revision_(request.revision) {}
  ~RequestWatch() {
    if (!told_) tell({.duration = clock_->now() - begun_, .cancelled = true});
  }
  RequestWatch(const RequestWatch&) = delete;
  RequestWatch& operator=(const RequestWatch&) = delete;

  /// `error`: the code of a JSON-RPC error, 0 for a result.
  void end(int error) { tell({.duration = clock_->now() - begun_, .error = error}); }

 private:
  void tell(const RequestEnd& end) {
    told_ = true;
    const RequestInfo info{
        .method = method_, .name = name_, .principal = principal_, .revision = revision_};
    for (const AfterRequest& hook : *hooks_) {
      try {
        hook(info, end);
      } catch (...) {
        static LogLimit limit;
        log_exception(limit, "An after hook failed");
      }
    }
  }

  const std::vector<AfterRequest>* hooks_;
  const Clock* clock_;
  TimePoint begun_;
  bool told_ = false;
  std::string method_, name_, principal_, revision_;
};

}  // namespace sluice

#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/turns/turn_watch.hpp"
#include "server/calls/pending_request.hpp"
#include "server/catalog/catalog.hpp"
#include "server/channel/reply_channel.hpp"
#include "server/streams/stream_service.hpp"
#include "server/workers/worker_pool.hpp"

namespace sluice {

/// The calls of one loop: requests that are answered later. A call is admitted before anything is
/// created for it, so no handler runs for a refused call. Belongs to its loop.
class Calls {
 public:
  /// `quota` is shared by all loops. `writers` check and write long results; if null, that happens
  /// on the loop. Both must outlive the calls.
  Calls(StreamService& streams, ClientQuota& quota, WorkerPool* writers = nullptr)
      : streams_(&streams), quota_(&quota), writers_(writers), watch_(streams.executor()) {}
  /// Ends the calls that are under way, with kBusy.
  ~Calls();
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  /// Takes the permit for a call of `principal`. Error: kLimitReached if the client has its maximum
  /// of calls.
  [[nodiscard]] Result<CallPermit> admit(const Principal& principal) const;
  /// Begins a call for a request of `caller`. The call may already be over if the caller has gone.
  /// Errors: those of Caller::open_channel(), and kLimitReached if the client has its maximum of
  /// calls.
  Result<std::shared_ptr<PendingRequest>> open(PendingRequest::Details details, Caller& caller,
                                               const RefPtr<LoopCatalog>& catalog);
  /// Begins a call that runs as `details.task`. It is limited as a task, and so takes no permit.
  std::shared_ptr<PendingRequest> open_task(PendingRequest::Details details,
                                            const RefPtr<LoopCatalog>& catalog);

  /// Stops all calls and answers them with `error`.
  void end_all(const Error& error);

  /// Keeps an object that is still in use after its call has ended, until let_go() or until this is
  /// destroyed.
  void keep(std::shared_ptr<void> left) { left_.push_back(std::move(left)); }
  template <class Left>
  void let_go(const Left& left) {
    const auto found =
        std::ranges::find(left_, static_cast<const void*>(&left), &std::shared_ptr<void>::get);
    if (found == left_.end()) return;
    const std::shared_ptr<void> released = std::move(*found);
    left_.erase(found);
  }

  [[nodiscard]] StreamService& streams() const { return *streams_; }
  [[nodiscard]] WorkerPool* writers() const { return writers_; }
  /// Is told of all user code that runs on the loop.
  [[nodiscard]] TurnWatch& watch() { return watch_; }

 private:
  friend class PendingRequest;
  std::shared_ptr<PendingRequest> add(PendingRequest::Details details,
                                      const RefPtr<LoopCatalog>& catalog);
  /// Called when `call` is over.
  void forget(const PendingRequest& call);

  StreamService* streams_;
  ClientQuota* quota_;
  WorkerPool* writers_;
  TurnWatch watch_;
  std::vector<PendingRequest*> under_way_;
  const PendingRequest::Parameters* parameters_ = nullptr;  // of the request that begins now
  std::vector<std::shared_ptr<void>> left_;
};

}  // namespace sluice

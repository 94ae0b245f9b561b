#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "server/calls/pending_request.hpp"
#include "server/catalog/catalog.hpp"
#include "server/channel/reply_channel.hpp"
#include "server/streams/stream_service.hpp"
#include "server/workers/worker_pool.hpp"

namespace sluice {

/// The calls of one loop: requests that are answered later. Each is admitted once, before anything
/// of it exists, so that what refuses it runs no handler. Belongs to its loop.
class Calls {
 public:
  /// `quota` is shared by all loops, and outlives the calls, as `checkers` do, which check long
  /// results; null: they are checked at once.
  Calls(StreamService& streams, ClientQuota& quota, WorkerPool* checkers = nullptr)
      : streams_(&streams), quota_(&quota), checkers_(checkers) {}
  /// Ends what is under way.
  ~Calls();
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  /// The place of a call of `principal`. kLimitReached when the client has as many as it may.
  [[nodiscard]] Result<CallPermit> admit(const Principal& principal) const;
  /// Begins to answer a request of `caller`; the call may be over if the caller has gone. Errors:
  /// kBusy when the caller has too many unanswered requests, kLimitReached when the client has as
  /// many calls as it may.
  Result<std::shared_ptr<PendingRequest>> open(PendingRequest::Details details, Caller& caller,
                                               const RefPtr<LoopCatalog>& catalog);
  /// Begins a call that runs as `details.task`, which has admitted it.
  std::shared_ptr<PendingRequest> open_task(PendingRequest::Details details,
                                            const RefPtr<LoopCatalog>& catalog);

  /// Stops all calls and answers them with `error`.
  void end_all(const Error& error);

  /// Keeps what a call has left behind that is still in use, until it is let go or this ends.
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
  [[nodiscard]] WorkerPool* checkers() const { return checkers_; }

 private:
  friend class PendingRequest;
  std::shared_ptr<PendingRequest> add(PendingRequest::Details details,
                                      const RefPtr<LoopCatalog>& catalog);
  /// It is over.
  void forget(const PendingRequest& call);

  StreamService* streams_;
  ClientQuota* quota_;
  WorkerPool* checkers_;
  std::vector<PendingRequest*> under_way_;
  std::vector<std::shared_ptr<void>> left_;
};

}  // namespace sluice

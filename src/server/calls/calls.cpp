#include "server/calls/calls.hpp"

#include <string>
#include <utility>

#include "core/log/over_limit.hpp"
#include "core/recycling.hpp"
#include "server/calls/inline_outlet.hpp"
#include "server/calls/resumable_outlet.hpp"
#include "server/calls/task_outlet.hpp"

namespace sluice {

Calls::~Calls() {
  end_all({kBusy, "The server is shutting down", {}});
}

std::shared_ptr<PendingRequest> Calls::add(PendingRequest::Details details,
                                           const RefPtr<LoopCatalog>& catalog) {
  auto call = make_shared_recycled<PendingRequest>(std::move(details), *this, catalog);
  call->number_ = static_cast<std::uint32_t>(under_way_.size());
  under_way_.push_back(call.get());
  return call;
}

void Calls::forget(const PendingRequest& call) {
  PendingRequest* const last = under_way_.back();
  under_way_[call.number_] = last;
  last->number_ = call.number_;
  under_way_.pop_back();
}

Result<CallPermit> Calls::admit(const Principal& principal) const {
  CallPermit permit = CallPermit::take(*quota_, principal);
  if (permit) return permit;
  return over_limit("You have " + std::to_string(quota_->limit()) +
                    " calls under way, the most one client may "
                    "(calls-per-client); wait for some");
}

Result<std::shared_ptr<PendingRequest>> Calls::open(PendingRequest::Details details, Caller& caller,
                                                    const RefPtr<LoopCatalog>& catalog) {
  Result<CallPermit> permit = admit(caller.principal());
  if (!permit) return std::unexpected(std::move(permit.error()));
  details.permit = std::move(*permit);
  Result<std::shared_ptr<ReplyChannel>> channel = caller.open_channel(details.id);
  if (!channel) return std::unexpected(std::move(channel.error()));
  const std::shared_ptr<Session> session = details.session;
  const std::shared_ptr<PendingRequest> call = add(std::move(details), catalog);
  call->add_watch(caller.watch());
  const bool is_resumable = session != nullptr && !session->id().empty() &&
                            (*channel)->can_stream() && !(*channel)->is_shared();
  if (is_resumable) {
    const auto outlet = std::make_shared<ResumableOutlet>(call->request_, call, std::move(*channel),
                                                          session, streams_->executor());
    call->outlet_ = outlet;
    outlet->open();
  } else {
    const auto outlet =
        make_shared_recycled<InlineOutlet>(call->request_, call, std::move(*channel));
    call->outlet_ = outlet;
    outlet->open();
  }
  return call;
}

std::shared_ptr<PendingRequest> Calls::open_task(PendingRequest::Details details,
                                                 const RefPtr<LoopCatalog>& catalog) {
  const std::shared_ptr<TaskRecord> task = details.task;
  std::shared_ptr<PendingRequest> call = add(std::move(details), catalog);
  call->outlet_ = std::make_shared<TaskOutlet>(task, call, streams_->executor());
  task->attach(call);
  return call;
}

void Calls::end_all(const Error& error) {
  // Code that is told of the end of a call may begin and end others.
  std::vector<std::weak_ptr<PendingRequest>> calls;
  calls.reserve(under_way_.size());
  for (PendingRequest* const call : under_way_) calls.push_back(call->weak_from_this());
  for (const auto& weak : calls) {
    if (const auto call = weak.lock()) call->abandon(error);
  }
}

}  // namespace sluice

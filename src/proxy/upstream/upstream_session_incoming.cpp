#include <algorithm>
#include <array>
#include <chrono>
#include <ranges>
#include <utility>

#include "client/session/task_follower.hpp"
#include "json/members.hpp"
#include "proxy/upstream/upstream_session.hpp"
#include "rpc/error_codes.hpp"
#include "server/calls/call_memory.hpp"

// What a server says: its notifications, and its questions with the calls that may ask them.

namespace sluice {
namespace {

constexpr std::string_view kNobodyFollows = "Nobody follows the task that this belongs to";
/// How long a question may wait for the answer that names its task.
constexpr Duration kTaskPatience = std::chrono::seconds(2);

std::optional<Change> change_of(std::string_view method, const json::object& params) {
  static constexpr std::array<std::pair<std::string_view, Change::Kind>, 3> kListChanges = {
      {{"notifications/tools/list_changed", Change::Kind::tools},
       {"notifications/prompts/list_changed", Change::Kind::prompts},
       {"notifications/resources/list_changed", Change::Kind::resources}}};
  for (const auto& [name, kind] : kListChanges) {
    if (method == name) return Change{.kind = kind};
  }
  if (method == "notifications/resources/updated") {
    return Change{.kind = Change::Kind::resource, .subject = std::string(text_at(params, "uri"))};
  }
  if (method == "notifications/elicitation/complete") {
    return Change{.kind = Change::Kind::elicitation,
                  .subject = std::string(text_at(params, "elicitationId"))};
  }
  return std::nullopt;
}

}  // namespace

std::shared_ptr<UpstreamCall> UpstreamSession::newest_call(
    const std::function<bool(const UpstreamCall&)>& is_right) const {
  for (const auto& [number, request] : requests_ | std::views::reverse) {
    if (is_right(*request.call)) return request.call;
  }
  return nullptr;
}

std::shared_ptr<UpstreamCall> UpstreamSession::call_of_task(const json::object& params) const {
  const std::string_view task = related_task(params);
  for (const auto& [number, request] : requests_) {
    if (!task.empty() && request.call->task() == task) return request.call;
  }
  return nullptr;
}

/// Whether it belongs to a task, which may have been that of a client which is not there any more.
/// Call if no call follows the task.
bool UpstreamSession::is_of_nobody(const json::object& params) const {
  return is_shared_ && !related_task(params).empty();
}

bool UpstreamSession::may_be_of_new_task(const json::object& params) const {
  return !related_task(params).empty() && call_of_task(params) == nullptr &&
         newest_call(&UpstreamCall::may_become_task) != nullptr;
}

bool UpstreamSession::names_unknown_task(const json::object& params) const {
  return !related_task(params).empty() && call_of_task(params) == nullptr &&
         newest_call(&UpstreamCall::may_become_task) == nullptr;
}

void UpstreamSession::on_notification(std::string_view method, const json::object& params) {
  heard();
  // What becomes of its tasks is for those who follow them.
  if (method.starts_with("notifications/tasks")) return;
  if (method == "notifications/subscriptions/acknowledged") {
    // A server may say that before it has said who it is.
    return is_open() && feed_.is_acknowledged_by(params) ? on_listening() : void();
  }
  if (const std::optional<Change> change = change_of(method, params)) {
    return listener_->on_change(*change);
  }
  // Where messages do not say which request they belong to, the newest whose client hears them is
  // the likeliest.
  auto call = call_of_task(params);
  if (call == nullptr && is_of_nobody(params)) return;
  if (call == nullptr) {
    call = newest_call([&](const UpstreamCall& each) { return each.hears(method, params); });
  }
  if (call != nullptr) return call->on_notification(method, params);
  listener_->on_notification(method, params);
}

bool UpstreamSession::offer_to_call(ServerQuestion& question, bool may_wait) {
  // A task's questions may come in reply to any request about it.
  std::shared_ptr<UpstreamCall> call = call_of_task(question.params);
  for (const auto& [number, request] : requests_) {
    const bool is_its_own = question.request != 0 && request.number == question.request;
    if (call == nullptr && is_its_own) call = request.call;
  }
  if (call == nullptr && may_wait && may_be_of_new_task(question.params)) return false;
  if (is_shared_ && question.request != 0 && call == nullptr) {
    // The call has ended meanwhile, and another may be another client's.
    question.answer(fail(kInvalidRequest, "The request that this belongs to is answered"));
    return true;
  }
  if (call == nullptr && is_of_nobody(question.params)) {
    question.answer(fail(kInvalidRequest, std::string(kNobodyFollows)));
    return true;
  }
  if (call == nullptr && !related_task(question.params).empty()) {
    call = newest_call(&UpstreamCall::may_become_task);
  }
  if (call == nullptr) call = newest_call(&UpstreamCall::can_ask);
  if (call == nullptr) return false;
  call->on_question(std::move(question));
  return true;
}

void UpstreamSession::offer(ServerQuestion question) {
  if (session_ == nullptr || offer_to_call(question)) return;
  if (payer_.memory == nullptr) return ask_or_keep(std::move(question), loop_->clock().now());
  Result<MemoryHold> held =
      hold_all(payer_.memory, kQueuedMessage + size_of(question.params).memory(),
               "what a server asks you outside of calls");
  if (!held) return question.answer(std::unexpected(std::move(held.error())));
  question.answer = [held = *std::move(held), answer = std::move(question.answer)](
                        Result<json::object> said) mutable { answer(std::move(said)); };
  ask_or_keep(std::move(question), loop_->clock().now());
}

void UpstreamSession::ask_or_keep(ServerQuestion question, TimePoint since) {
  const bool is_early = may_be_of_new_task(question.params);
  if (is_early) limit_patience(since);
  if (is_retired_ && !is_early) {
    return question.answer(fail(kInvalidRequest, "The client has another session by now"));
  }
  const bool is_asked = !is_early && listener_->on_question(question);
  if (!is_asked) waiting_.push_back({std::move(question), since});
}

void UpstreamSession::offer_waiting_later() {
  if (waiting_.empty()) return;
  loop_->post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->offer_waiting();
  });
}

void UpstreamSession::limit_patience(TimePoint since) {
  if (patience_ != 0) return;
  patience_ = loop_->schedule_at(since + kTaskPatience, [this] {
    patience_ = 0;
    offer_waiting();
  });
}

void UpstreamSession::offer_waiting() {
  const TimePoint now = loop_->clock().now();
  for (auto& [question, since] : std::exchange(waiting_, {})) {
    if (session_ == nullptr) continue;
    const bool may_wait = now - since < kTaskPatience;
    // The call that might have become its task is over.
    if (names_unknown_task(question.params)) {
      question.answer(fail(kInvalidRequest, std::string(kNobodyFollows)));
    } else if (!offer_to_call(question, may_wait)) {
      ask_or_keep(std::move(question), since);
    }
  }
}

void UpstreamSession::refuse_questions() {
  for (Waiting& each : std::exchange(waiting_, {})) {
    if (may_be_of_new_task(each.question.params)) {
      waiting_.push_back(std::move(each));
    } else {
      each.question.answer(fail(kInvalidRequest, "The client cannot be asked now"));
    }
  }
}

void UpstreamSession::on_withdrawn(std::uint64_t question) {
  std::erase_if(waiting_,
                [question](const auto& each) { return each.question.number == question; });
  std::vector<std::shared_ptr<UpstreamCall>> calls;
  for (const auto& [number, request] : requests_) calls.push_back(request.call);
  for (const auto& call : calls) call->on_withdrawn(question);
  if (!is_retired_) listener_->on_withdrawn(question);
}

}  // namespace sluice

#include "proxy/calls/forwarded_call.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "client/session/task_follower.hpp"
#include "core/log/over_limit.hpp"
#include "core/text/text.hpp"
#include "json/members.hpp"
#include "protocol/error_codes.hpp"
#include "protocol/input_rounds.hpp"
#include "proxy/translation/names.hpp"
#include "proxy/translation/translation.hpp"
#include "rpc/error_codes.hpp"
#include "server/calls/call_memory.hpp"
#include "server/calls/calls.hpp"
#include "server/tasks/task_service.hpp"

namespace sluice {
namespace {

/// Room for the text of most results.
constexpr std::size_t kUsualResult = 512;

/// The proxy's own keys are this and a number.
constexpr std::string_view kOwnKey = "q";
/// So many keys of a server are kept in a call. Later questions have ours.
constexpr std::size_t kMostKeys = 64;

bool may_be_own_key(std::string_view key) {
  return key.starts_with(kOwnKey) && std::ranges::all_of(key.substr(kOwnKey.size()), is_digit);
}

/// A number of a progress notification; nothing if there is none.
std::optional<double> number_at(const json::object& params, std::string_view name) {
  const json::value* const value = params.if_contains(name);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return value->to_number<double>();
}

void write_result(PendingRequest& call, const json::object& result) {
  const json::value* const is_error = result.if_contains("isError");
  const bool is_failure = is_error != nullptr && *is_error == true;
  std::string text;
  text.reserve(kUsualResult);
  append_json(text, result);
  call.answer_with_result(text, is_failure);
}

/// Whether a server that has asked this during one call, which became this task, may have meant
/// another, or means the task.
bool may_be_of_another(const ServerQuestion& question, std::string_view task = {}) {
  const std::string_view named = related_task(question.params);
  return named.empty() ? question.request == 0 : named == task;
}

}  // namespace

ForwardedCall::ForwardedCall(std::shared_ptr<ProxyClient> client, std::size_t index,
                             std::string method, ParkedCalls& parked)
    : client_(std::move(client)),
      index_(index),
      session_(client_->shared_part(index)),
      method_(std::move(method)),
      parked_(&parked) {}

ForwardedCall::~ForwardedCall() {
  detach();
}

void ForwardedCall::attach(const std::shared_ptr<PendingRequest>& call) {
  call_ = call;
  revision_ = call->context().revision;
  call_->set_producer(this);
  pause(false);
}

void ForwardedCall::detach() {
  const auto call = std::exchange(call_, nullptr);
  if (call != nullptr && !call->over()) call->set_producer(nullptr);
}

void ForwardedCall::start(json::object params, const std::shared_ptr<PendingRequest>& call,
                          const std::shared_ptr<Session>& session) {
  attach(call);
  client_session_ = session;
  has_session_ = session != nullptr;
  memory_ = call->take_memory();
  if (session_->is_open()) return begin(std::move(params));
  params_.emplace(std::move(params));
  session_->when_open(
      [self = shared_from_this()](const Result<void>& outcome) { self->on_open(outcome); });
}

std::optional<LoggingLevel> ForwardedCall::wanted_level() const {
  if (!has_session_) return call_->context().logging_level;
  const auto session = client_session_.lock();
  return session == nullptr ? std::nullopt : std::optional(session->logging_level());
}

void ForwardedCall::on_open(const Result<void>& outcome) {
  if (call_ == nullptr) return;  // cancelled
  if (!outcome) return deliver(std::unexpected(outcome.error()));
  begin(*std::exchange(params_, std::nullopt));
}

void ForwardedCall::begin(json::object params) {
  if (!hold_message(params)) return;
  const std::optional<LoggingLevel> level = wanted_level();
  if (level && !has_session_) client_->set_level(index_, *level);
  const ServerDescription& server = session().server();
  params = params_for(*server.revision, std::move(params), level);
  wants_task_ = call_->may_become_task() && makes_tasks(server);
  // A client of 2026-07-28 lets the server decide. A server of 2025-11-25 lets the client decide,
  // so the proxy asks it for a task.
  if (wants_task_ && server.revision->tasks == TaskModel::requested) {
    json::object asking = params;
    params_.emplace(std::move(params));
    if (!asking.contains("task")) asking["task"] = json::object();
    return send(std::move(asking));
  }
  send(std::move(params));
}

bool ForwardedCall::hold_message(const json::object& params) {
  // Otherwise each request has a connection, which goes with it.
  if (!session().shares_connection()) return true;
  Result<MemoryHold> held = hold_all(call_->memory(), kQueuedMessage + size_of(params).memory(),
                                     "calls that the server has not taken");
  if (!held) {
    end(held.error());
    return false;
  }
  message_memory_ = std::make_shared<MemoryHold>(*std::move(held));
  return true;
}

void ForwardedCall::send(json::object params) {
  const bool is_task = wants_task_ && session().server().revision->tasks == TaskModel::requested;
  if (method_ == "tools/call" && !is_task) params.erase("task");
  number_ = session().begin(method_, std::move(params), shared_from_this(), wants_task_,
                            std::exchange(message_memory_, {}));
}

void ForwardedCall::resume(const std::shared_ptr<PendingRequest>& call) {
  attach(call);
  for (auto& [number, question] : questions_) question.memory.release();
  const MemoryHold held = std::exchange(answer_memory_, MemoryHold());
  if (answer_) return take(*std::exchange(answer_, std::nullopt));
  ask_all();
}

void ForwardedCall::give_up() {
  is_given_up_ = true;
  detach();
  if (number_ != 0) session().cancel(std::exchange(number_, 0));
  if (!task_.empty()) session().cancel_task(task_);
  // The server may still count them as open.
  for (auto& [number, question] : take_back()) {
    ServerQuestion& asked = question.asked;
    if (may_be_of_another(asked) && session().offer_to_call(asked)) continue;
    asked.answer(fail(kInvalidRequest, "The client has given up the call"));
  }
}

void ForwardedCall::on_cancel() {
  // The end of a round is no cancellation.
  if (is_asking_) return;
  const auto keep = shared_from_this();
  give_up();
}

// --- before the answer --------------------------------------------------------------------------

void ForwardedCall::on_progress(const json::object& params) {
  // A task's state is the proxy's own.
  if (call_ == nullptr || !params.contains("progress")) return;
  const auto keep = call_;
  const bool has_room = keep->progress(number_at(params, "progress").value_or(0),
                                       number_at(params, "total"), text_at(params, "message"));
  if (!has_room && call_ != nullptr) pause(true);
}

bool ForwardedCall::hears(std::string_view method, const json::object& params) const {
  if (call_ == nullptr) return false;
  if (method != "notifications/message") return true;
  const std::optional<LoggingLevel> least = wanted_level();
  const auto level = parse_logging_level(text_at(params, "level"));
  return least && level && *level >= *least;
}

void ForwardedCall::on_notification(std::string_view method, const json::object& params) {
  if (!hears(method, params)) return;
  const auto keep = call_;
  json::object told(params, json::storage_ptr());
  if (!keep->notify(method, to_json(told)) && call_ != nullptr) pause(true);
}

bool ForwardedCall::can_ask() const {
  return has_session_ || !task_.empty() || may_require_input(method_);
}

std::string ForwardedCall::key_for(const ServerQuestion& question) {
  // A server may use a key again in a later round, or one that would be ours. Our client would take
  // that for the same question.
  const bool can_be_kept = !question.key.empty() && !may_be_own_key(question.key);
  if (can_be_kept && keys_.size() < kMostKeys && keys_.insert(question.key).second) {
    return question.key;
  }
  return std::string(kOwnKey) + std::to_string(question.number);
}

Result<MemoryHold> ForwardedCall::hold_for(const Question& question) const {
  return hold_all(share_, size_of(question.asked.params).memory() + question.key.size(),
                  "what this call asks its client");
}

void ForwardedCall::on_question(ServerQuestion question) {
  const std::uint64_t number = question.number;
  std::string key = key_for(question);
  Question asked{
      .asked = std::move(question), .key = std::move(key), .withdraw = {}, .memory = MemoryHold()};
  if (call_ == nullptr) {
    Result<MemoryHold> held = hold_for(asked);
    if (!held) return asked.asked.answer(std::unexpected(std::move(held.error())));
    asked.memory = *std::move(held);
  }
  questions_.emplace(number, std::move(asked));
  if (has_session_ || !task_.empty()) return ask_one(number);
  // All questions of one turn are asked in one round.
  if (std::exchange(asks_later_, true)) return;
  client_->loop().post([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->asks_later_ = false;
    self->ask_all();
  });
}

InputRequest ForwardedCall::request_of(const Question& question) const {
  const ServerQuestion& asked = question.asked;
  return {.key = question.key,
          .method = asked.method,
          .params = question_for(*revision_, asked.method,
                                 json::object(asked.params, json::storage_ptr()))};
}

void ForwardedCall::ask_one(std::uint64_t number) {
  if (call_ == nullptr) return;
  const auto keep = shared_from_this();
  const std::shared_ptr<PendingRequest> call = call_;
  PendingRequest::Withdraw withdraw =
      call->ask({request_of(questions_.at(number))},
                [weak = weak_from_this(), number](Result<std::vector<json::value>> said) {
                  const auto self = weak.lock();
                  if (self == nullptr) return;
                  self->on_said(number, said ? Result<json::value>(std::move(said->front()))
                                             : std::unexpected(std::move(said.error())));
                });
  if (call->over()) {  // it could not be asked, which has ended the call
    on_said(number, fail(kLimitReached, "The client cannot be asked now"));
    return give_up();
  }
  const auto found = questions_.find(number);
  if (found != questions_.end()) found->second.withdraw = std::move(withdraw);
}

void ForwardedCall::ask_all() {
  if (call_ == nullptr || questions_.empty()) return;
  std::vector<InputRequest> requests;
  std::vector<std::uint64_t> numbers;
  for (const auto& [number, question] : questions_) {
    numbers.push_back(number);
    requests.push_back(request_of(question));
  }
  const auto keep = shared_from_this();
  const std::shared_ptr<PendingRequest> call = call_;
  share_ = call->memory();
  for (auto& [number, question] : questions_) {
    Result<MemoryHold> held = hold_for(question);
    if (!held) return end(held.error());
    question.memory = *std::move(held);
  }
  const ParkedCalls::Key key = ParkedCalls::key_of(*call);
  is_asking_ = true;
  call->ask(std::move(requests), [this, numbers](Result<std::vector<json::value>> said) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      on_said(numbers[i],
              said ? Result<json::value>(std::move((*said)[i])) : std::unexpected(said.error()));
    }
  });
  is_asking_ = false;
  if (!call->over()) return;
  call_ = nullptr;
  // Until the client comes back, nobody would say that there is room.
  pause(false);
  if (!is_given_up_) parked_->add(key, shared_from_this());
}

void ForwardedCall::end(const Error& why) {
  const std::shared_ptr<PendingRequest> call = call_;
  give_up();
  call->fail(why);
}

void ForwardedCall::on_said(std::uint64_t number, Result<json::value> said) {
  const auto found = questions_.find(number);
  if (found == questions_.end()) return;
  auto answer = std::move(found->second.asked.answer);
  questions_.erase(found);
  if (!said) return answer(std::unexpected(std::move(said.error())));
  if (!said->is_object()) return answer(fail(kInternalError, "The client's answer is no object"));
  answer(json::object(said->get_object(), json::storage_ptr()));
}

void ForwardedCall::on_withdrawn(std::uint64_t question) {
  const auto found = questions_.find(question);
  if (found == questions_.end()) return;
  PendingRequest::Withdraw withdraw = std::move(found->second.withdraw);
  questions_.erase(found);
  if (withdraw) withdraw();
}

ForwardedCall::Questions ForwardedCall::take_back() {
  Questions taken = std::exchange(questions_, {});
  for (auto& [number, question] : taken) {
    if (question.withdraw) question.withdraw();
  }
  return taken;
}

// --- the answer ---------------------------------------------------------------------------------

void ForwardedCall::on_answer(Result<json::object> answer) {
  const auto keep = shared_from_this();
  number_ = 0;
  if (is_given_up_) return;
  Questions open = take_back();
  if (call_ == nullptr) {
    keep_answer(std::move(answer));
  } else {
    take(std::move(answer));
  }
  const bool is_followed = number_ != 0;
  // The server has not waited for their answers, or they belong to what it still works on.
  for (auto& [number, question] : open) {
    ServerQuestion& asked = question.asked;
    if (may_be_of_another(asked, is_followed ? task_ : std::string_view())) {
      session().offer(std::move(asked));
    } else {
      asked.answer(fail(kInvalidRequest, "The call that this belongs to has been answered"));
    }
  }
}

void ForwardedCall::keep_answer(Result<json::object> answer) {
  answer_memory_ = MemoryHold(share_);
  if (answer && !answer_memory_.add(size_of(*answer).memory())) {
    answer = over_limit(
        "The server has answered while the call waited for you, and there was no memory to keep "
        "the answer: your streams, calls and subscriptions have used all that one client may "
        "have. Make the call again; or raise streams.max_total_bytes");
  }
  answer_ = std::move(answer);
}

void ForwardedCall::take(Result<json::object> answer) {
  // The task of it has ended, or there was to be none.
  if (!std::exchange(wants_task_, false)) return deliver(std::move(answer));
  const Revision& theirs = *session().server().revision;
  const bool is_left_to_server = revision_->tasks == TaskModel::extension;
  if (!answer) {
    const bool may_not = is_left_to_server && theirs.tasks == TaskModel::requested &&
                         answer.error().code == kMethodNotFound;
    return may_not && session().is_open() ? send(*std::exchange(params_, std::nullopt))
                                          : deliver(std::move(answer));
  }
  params_.reset();
  task_ = created_task(theirs, *answer);
  if (task_.empty() && is_left_to_server) return deliver(std::move(answer));
  if (!begin_task()) {
    if (!task_.empty()) session().cancel_task(task_);
  } else if (task_.empty()) {
    deliver(std::move(answer));
  } else {
    // The answer may have waited for the client's next round, and the session may be over by now.
    session().when_open(
        [self = shared_from_this()](const Result<void>& outcome) { self->follow(outcome); });
  }
}

void ForwardedCall::follow(const Result<void>& outcome) {
  if (call_ == nullptr) return;  // cancelled
  if (!outcome) return deliver(std::unexpected(outcome.error()));
  number_ = session().follow(task_, shared_from_this());
}

bool ForwardedCall::begin_task() {
  const std::shared_ptr<PendingRequest> call = call_;
  detach();
  const Result<std::shared_ptr<PendingRequest>> task = call->begin_task();
  if (!task) {
    call->fail(task.error());
  } else {
    attach(*task);
  }
  return task.has_value();
}

void ForwardedCall::deliver(Result<json::object> answer) {
  const std::shared_ptr<PendingRequest> call = call_;
  detach();
  const ServerDescription& server = session().server();
  if (!answer) {
    if (failed_) failed_();
    const bool needs_task = method_ == "tools/call" && answer.error().code == kMethodNotFound &&
                            revision_->tasks == TaskModel::extension &&
                            !call->context().capabilities.tasks && makes_tasks(server);
    return call->fail(needs_task ? tasks_extension_missing()
                                 : error_for(*revision_, session().upstream().options().prefix,
                                             method_, std::move(answer.error())));
  }
  Upstream& upstream = session().upstream();
  upstream.learn(method_, *answer);
  offer_tasks(*revision_, server, method_, *answer);
  add_prefix(upstream.options().prefix, method_, *answer);
  make_result_for(*revision_, method_, server.about, *answer);
  write_result(*call, *answer);
}

void ForwardedCall::on_result(const json::object& result) {
  const bool passes_unchanged =
      method_ == "tools/call" && call_ != nullptr && !wants_task_ && questions_.empty() &&
      session().upstream().options().prefix.empty() && is_tool_result_for(*revision_, result);
  if (!passes_unchanged) return on_answer(json::object(result, json::storage_ptr()));
  const auto keep = shared_from_this();
  number_ = 0;
  const std::shared_ptr<PendingRequest> call = call_;
  detach();
  write_result(*call, result);
}

}  // namespace sluice

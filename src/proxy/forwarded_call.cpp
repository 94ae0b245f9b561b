#include "proxy/forwarded_call.hpp"

#include <utility>
#include <vector>

#include "json/members.hpp"
#include "protocol/error_codes.hpp"
#include "protocol/input_rounds.hpp"
#include "proxy/names.hpp"
#include "proxy/translation.hpp"
#include "rpc/error_codes.hpp"
#include "server/tasks/task_service.hpp"

namespace sluice {
namespace {

/// A number of a progress notification; nothing if there is none.
std::optional<double> number_at(const json::object& params, std::string_view name) {
  const json::value* const value = params.if_contains(name);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return value->to_number<double>();
}

}  // namespace

ForwardedCall::ForwardedCall(std::shared_ptr<ProxyClient> client, std::size_t index,
                             std::string method, ParkedCalls& parked)
    : client_(std::move(client)), index_(index), method_(std::move(method)), parked_(&parked) {}

ForwardedCall::~ForwardedCall() {
  detach();
}

std::string ForwardedCall::key_of(PendingRequest& call) {
  return call.principal().id + "\n" + call.idempotency_key();
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
  params_ = std::move(params);
  this->session().when_open(
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
  const std::optional<LoggingLevel> level = wanted_level();
  if (level && !has_session_) client_->set_level(index_, *level);
  const ServerDescription& server = session().server();
  params_ = params_for(*server.revision, std::exchange(params_, {}), level);
  wants_task_ = call_->may_become_task() && makes_tasks(server);
  // A client that leaves it to the server asks for tasks where the server leaves it to the client.
  if (wants_task_ && server.revision->tasks == TaskModel::requested) {
    json::object asking = params_;
    if (!asking.contains("task")) asking["task"] = json::object();
    return send(std::move(asking));
  }
  send(std::exchange(params_, {}));
}

void ForwardedCall::send(json::object params) {
  const bool is_task = wants_task_ && session().server().revision->tasks == TaskModel::requested;
  if (method_ == "tools/call" && !is_task) params.erase("task");
  number_ = session().begin(method_, std::move(params), shared_from_this(), wants_task_);
}

void ForwardedCall::resume(const std::shared_ptr<PendingRequest>& call) {
  attach(call);
  if (answer_) return take(*std::exchange(answer_, std::nullopt));
  ask_all();
}

void ForwardedCall::give_up() {
  is_given_up_ = true;
  detach();
  questions_.clear();
  if (number_ != 0) session().cancel(std::exchange(number_, 0));
  if (!task_.empty()) session().cancel_task(task_);
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

void ForwardedCall::on_notification(std::string_view method, const json::object& params) {
  if (call_ == nullptr) return;
  if (method == "notifications/message") {
    const std::optional<LoggingLevel> least = wanted_level();
    const auto level = parse_logging_level(text_at(params, "level"));
    if (!least || !level || *level < *least) return;
  }
  const auto keep = call_;
  json::object told(params, json::storage_ptr());
  if (!keep->notify(method, to_json(told)) && call_ != nullptr) pause(true);
}

bool ForwardedCall::can_ask() const {
  return has_session_ || !task_.empty() || may_require_input(method_);
}

std::string ForwardedCall::key_for(const ServerQuestion& question) {
  std::string own = "q" + std::to_string(question.number);
  if (question.key.empty()) return own;
  // A server may use a key again in a later round. Our client would take that for the same
  // question.
  std::string key = question.key;
  while (!keys_.insert(key).second) key += "-" + own;
  return key;
}

void ForwardedCall::on_question(ServerQuestion question) {
  const std::uint64_t number = question.number;
  json::object params = question_for(*revision_, question.method, std::move(question.params));
  questions_.emplace(number, Question{.request = {.key = key_for(question),
                                                  .method = std::move(question.method),
                                                  .params = std::move(params)},
                                      .answer = std::move(question.answer),
                                      .withdraw = {}});
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

void ForwardedCall::ask_one(std::uint64_t number) {
  if (call_ == nullptr) return;
  const auto keep = shared_from_this();
  const std::shared_ptr<PendingRequest> call = call_;
  PendingRequest::Withdraw withdraw =
      call->ask({questions_.at(number).request},
                [weak = weak_from_this(), number](Result<std::vector<json::value>> said) {
                  const auto self = weak.lock();
                  if (self == nullptr) return;
                  self->on_said(number, said ? Result<json::value>(std::move(said->front()))
                                             : std::unexpected(std::move(said.error())));
                });
  if (call->over()) return give_up();  // it could not be asked, which has ended the call
  const auto found = questions_.find(number);
  if (found != questions_.end()) found->second.withdraw = std::move(withdraw);
}

void ForwardedCall::ask_all() {
  if (call_ == nullptr || questions_.empty()) return;
  std::vector<InputRequest> requests;
  std::vector<std::uint64_t> numbers;
  for (const auto& [number, question] : questions_) {
    numbers.push_back(number);
    requests.push_back(question.request);
  }
  const auto keep = shared_from_this();
  const std::shared_ptr<PendingRequest> call = call_;
  const auto give = [this, numbers](Result<std::vector<json::value>> said) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      on_said(numbers[i],
              said ? Result<json::value>(std::move((*said)[i])) : std::unexpected(said.error()));
    }
  };
  if (parked_->is_full()) {
    return give(fail(kLimitReached, "Too many calls wait for their clients' answers"));
  }
  const std::string key = key_of(*call);
  is_asking_ = true;
  call->ask(std::move(requests), give);
  is_asking_ = false;
  if (!call->over()) return;
  call_ = nullptr;
  if (!is_given_up_) parked_->add(key, shared_from_this());
}

void ForwardedCall::on_said(std::uint64_t number, Result<json::value> said) {
  const auto found = questions_.find(number);
  if (found == questions_.end()) return;
  Answer answer = std::move(found->second.answer);
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

// --- the answer ---------------------------------------------------------------------------------

void ForwardedCall::on_answer(Result<json::object> answer) {
  const auto keep = shared_from_this();
  number_ = 0;
  questions_.clear();
  if (is_given_up_) return;
  if (call_ == nullptr) {
    answer_ = std::move(answer);
  } else {
    take(std::move(answer));
  }
}

void ForwardedCall::take(Result<json::object> answer) {
  // The task of it has ended, or there was to be none.
  if (!std::exchange(wants_task_, false)) return deliver(std::move(answer));
  const Revision& theirs = *session().server().revision;
  const bool is_left_to_server = revision_->tasks == TaskModel::extension;
  if (!answer) {
    const bool may_not = is_left_to_server && theirs.tasks == TaskModel::requested &&
                         answer.error().code == kMethodNotFound;
    return may_not && session().is_open() ? send(std::exchange(params_, {}))
                                          : deliver(std::move(answer));
  }
  params_ = {};
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
    const bool needs_task = method_ == "tools/call" && answer.error().code == kMethodNotFound &&
                            revision_->tasks == TaskModel::extension &&
                            !call->context().capabilities.tasks && makes_tasks(server);
    return call->fail(needs_task ? tasks_extension_missing()
                                 : error_for(*revision_, method_, std::move(answer.error())));
  }
  Upstream& upstream = session().upstream();
  upstream.learn(method_, *answer);
  offer_tasks(*revision_, server, method_, *answer);
  add_prefix(upstream.options().prefix, method_, *answer);
  make_result_for(*revision_, method_, server.about, *answer);
  const json::value* const is_error = answer->if_contains("isError");
  call->answer_with_result(to_json(*answer), is_error != nullptr && *is_error == true);
}

}  // namespace sluice

#include "client/session/client_session.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "client/reply.hpp"
#include "client/session/change_watch.hpp"
#include "client/session/task_follower.hpp"
#include "client/session/tool_refresh.hpp"
#include "core/log/log.hpp"
#include "json/members.hpp"
#include "net/http/status_codes.hpp"
#include "protocol/error_codes.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

/// A copy that outlives its message. A plain copy would use the memory of the parser too.
json::object own_copy(const json::object& of) {
  return {of, json::storage_ptr()};
}

}  // namespace

ClientSession::ClientSession(Executor& loop, std::unique_ptr<ServerLink> link, Options options)
    : loop_(&loop),
      options_(std::move(options)),
      handshake_(*this, options_),
      questions_(loop, options_),
      server_requests_(
          questions_, options_.max_questions, [this](std::string text) { reply(std::move(text)); },
          [this](Number request) { on_turn(request); }),
      requests_(loop, [this](Number number, const char* why) { give_up(number, why); }),
      link_(std::move(link)),
      writer_(options_, tools_, link_->carries_headers()) {}

ClientSession::~ClientSession() {
  remove_all();
  activities_.stop_all();
}

// --- connecting ---------------------------------------------------------------------------------

void ClientSession::connect(std::function<void(Result<ServerDescription>)> done) {
  handshake_.start([this, done = std::move(done)](Result<ServerDescription> outcome) {
    if (outcome) server_ = *outcome;
    done(std::move(outcome));
  });
}

void ClientSession::ask(std::string method, json::object params, Duration patience) {
  begin(std::move(method), std::move(params), {.idle_timeout = patience, .timeout = {}},
        {.on_progress = {}, .on_answer = [this](Result<json::object> answer) {
           if (!lost_) handshake_.on_answer(std::move(answer));
         }});
}

void ClientSession::later(UniqueFunction<void()> task) {
  loop_->post([weak = weak_from_this(), task = std::move(task)]() mutable {
    if (const auto self = weak.lock()) task();
  });
}

void ClientSession::to_new_session(const RequestId& id, bool is_current) {
  const std::shared_ptr<ClientSession> keep = shared_from_this();
  const Number number = requests_.number_of(id);
  if (number == 0) return;
  OpenRequest& request = *requests_.find(number);
  if (request.was_held || is_handshake(request.method)) {
    return end(number, fail(kNotFound, "The server has forgotten the session again"));
  }
  requests_.end_round(request);
  if (is_current || !has_session()) return hold(number, request);
  request.was_held = true;
  send_round(number, request);
}

void ClientSession::hold(Number number, OpenRequest& request) {
  request.was_held = true;
  requests_.expect(number, request);
  held_.push_back(number);
  renew();
}

void ClientSession::renew() {
  if (handshake_.is_running()) return;
  // The new session may use the ids of the old one's questions again.
  server_requests_.withdraw_all();
  handshake_.renew(*server_.revision, [this](Result<ServerDescription> outcome) {
    if (!outcome) return renewed(std::unexpected(std::move(outcome.error())));
    server_ = *std::move(outcome);
    renewed({});
  });
}

void ClientSession::renewed(const Result<void>& outcome) {
  has_no_session_ = !outcome;
  for (const Number number : std::exchange(held_, {})) {
    OpenRequest* const request = requests_.find(number);
    if (request == nullptr) continue;
    outcome ? send_round(number, *request) : end_later(number, std::unexpected(outcome.error()));
  }
  if (!outcome) return;
  activities_.on_renewed();
  if (options_.on_renewed) options_.on_renewed();
}

// --- requests -----------------------------------------------------------------------------------

std::optional<Error> ClientSession::refusal() const {
  if (lost_) {
    return Error{kLostConnection, "The connection to the server is over: " + lost_->message, {}};
  }
  if (unanswered() < options_.max_requests) return std::nullopt;
  return Error{
      kLimitReached,
      "There are " + std::to_string(options_.max_requests) + " unanswered requests to this server",
      {}};
}

ClientSession::Number ClientSession::begin(std::string method, json::object params,
                                           const RequestOptions& options,
                                           RequestCallbacks callbacks) {
  const Number number = ++last_number_;
  // A full house must not keep the session from being replaced.
  const std::optional<Error> refused = is_handshake(method) && !lost_ ? std::nullopt : refusal();
  std::optional<json::object> known = refused || !is_cached(method, params)
                                          ? std::nullopt
                                          : cache_.find(method, params, loop_->clock().now());
  OpenRequest& request = requests_.add(number, {.method = std::move(method),
                                                .params = std::move(params),
                                                .options = cut_to_forever(options),
                                                .callbacks = std::move(callbacks),
                                                .faults = faults_});
  if (refused) {
    end_later(number, std::unexpected(*refused));
  } else if (known) {
    end_later(number, *std::move(known));
  } else if (!has_session() && !is_handshake(request.method)) {
    hold(number, request);
  } else {
    send_round(number, request);
  }
  return number;
}

bool ClientSession::is_cached(std::string_view method, const json::object& params) const {
  return options_.caches && server_.revision->cache_hints && ResultCache::is_cacheable(method) &&
         !params.contains("_meta");
}

ClientSession::Number ClientSession::begin(std::shared_ptr<SessionActivity> activity) {
  const Number number = ++last_number_;
  const std::optional<Error> refused = refusal();
  SessionActivity& begun = activities_.add(number, std::move(activity));
  refused ? end_later(number, std::unexpected(*refused)) : begun.start(number);
  return number;
}

ClientSession::Number ClientSession::follow_task(std::string id, const RequestOptions& options,
                                                 RequestCallbacks callbacks) {
  return begin(std::make_shared<TaskFollower>(*this, *loop_, questions_, std::move(id), options,
                                              std::move(callbacks)));
}

ClientSession::Number ClientSession::watch(WatchFilter filter, RequestCallbacks callbacks) {
  return begin(
      std::make_shared<ChangeWatch>(*this, *loop_, std::move(filter), std::move(callbacks)));
}

/// Sends the next round, or says later why that is not possible. Its id is also its progress token.
void ClientSession::send_round(Number number, OpenRequest& request) {
  requests_.begin_round(number, request);
  Result<void> sent =
      link_->send(writer_.write({.method = request.method,
                                 .params = request.params,
                                 .id = std::to_string(request.id),
                                 .may_become_task = request.options.may_become_task},
                                *server_.revision));
  if (!sent) return end_later(number, std::unexpected(std::move(sent.error())));
  expect(number, request);
}

void ClientSession::expect(Number number, OpenRequest& request) {
  // Questions do not keep connecting alive: they may not come before it is done.
  const bool waits_for_us = !is_handshake(request.method) && server_requests_.is_our_turn(number);
  waits_for_us ? requests_.stop_waiting(request) : requests_.expect(number, request);
}

void ClientSession::on_turn(Number only) {
  for (const auto& [number, each] : requests_.all()) {
    const bool is_concerned = each.id != 0 && (only == 0 || only == number);
    if (is_concerned) expect(number, *requests_.find(number));
  }
}

Result<void> ClientSession::notify(std::string_view method, json::object params) {
  return link_->send(
      writer_.write({.method = std::string(method), .params = params}, *server_.revision));
}

void ClientSession::give_up(Number number, const char* what) {
  const std::shared_ptr<ClientSession> keep = shared_from_this();
  const OpenRequest& request = *requests_.find(number);
  if (request.method == "server/discover") late_probe_ = std::to_string(request.id);
  tell_cancelled(request, what);
  end(number, std::unexpected(explained(
                  request, {kTimedOut, "No answer to " + request.method + ": " + what, {}})));
}

OpenRequest ClientSession::remove(Number number) {
  pause(number, false);
  OpenRequest request = requests_.take(number);
  withdraw_inputs(request);
  return request;
}

void ClientSession::pause(Number number, bool is_paused) {
  OpenRequest* const request = requests_.find(number);
  if (request == nullptr || is_paused == !request->paused.empty()) return;
  if (is_paused && request->id != 0) {
    request->paused = std::to_string(request->id);
    link_->pause(request->paused, true);
  } else if (!is_paused) {
    link_->pause(std::exchange(request->paused, {}), false);
  }
}

void ClientSession::withdraw_inputs(OpenRequest& request) {
  for (const auto& [key, question] : std::exchange(request.open_inputs, {})) {
    questions_.withdraw(question);
  }
}

void ClientSession::remove_all() {
  while (requests_.size() > 0) remove(requests_.all().begin()->first);
}

void ClientSession::cancel(Number number) {
  if (const auto activity = activities_.take(number)) return activity->cancel();
  if (requests_.find(number) == nullptr) return;
  const OpenRequest request = remove(number);
  tell_cancelled(request, "nobody waits for the answer");
}

void ClientSession::close(std::function<void()> done) {
  remove_all();
  activities_.stop_all();
  server_requests_.withdraw_all();
  handshake_.drop();
  link_->close(std::move(done));
}

void ClientSession::tell_cancelled(const OpenRequest& request, std::string_view reason) {
  // A client must not cancel `initialize` (2025-11-25, Cancellation), and a server that is silent
  // on the probe knows no cancellation.
  if (request.id == 0 || lost_ || is_handshake(request.method)) return;
  if (link_->drop(std::to_string(request.id))) return;
  const Result<void> sent =
      notify("notifications/cancelled", {{"requestId", request.id}, {"reason", reason}});
  if (!sent) log_debug("a cancellation could not be sent", {{"why", sent.error().message}});
}

void ClientSession::end(Number number, Result<json::object> answer) {
  if (const auto activity = activities_.find(number)) return activity->end(std::move(answer));
  if (requests_.find(number) == nullptr) return;
  const OpenRequest request = remove(number);
  const std::shared_ptr<ClientSession> keep = shared_from_this();
  if (request.callbacks.on_answer) request.callbacks.on_answer(std::move(answer));
}

void ClientSession::end_later(Number number, Result<json::object> answer) {
  loop_->post([weak = weak_from_this(), number, answer = std::move(answer)]() mutable {
    if (const auto self = weak.lock()) self->end(number, std::move(answer));
  });
}

// --- what the server sends ----------------------------------------------------------------------

bool ClientSession::take(std::string_view text, const RequestId* only) {
  const std::shared_ptr<ClientSession> keep = shared_from_this();
  const bool is_right = take_each(text, only);
  parser_.forget_long();
  return is_right;
}

bool ClientSession::take_each(std::string_view text, const RequestId* only) {
  if (!server_.revision->batches || !is_batch(text)) return take_one(text, only);
  // The texts point into `text`, so each can be parsed by itself.
  const auto texts = parser_.parse_batch(text, kMaxBatch);
  if (!texts) {
    on_unreadable({}, texts.error().error);
    return true;
  }
  bool is_right = true;
  for (const std::string_view each : *texts) {
    is_right &= take_one(each, only);
    // Only take() has it any more: a callback has destroyed it.
    if (weak_from_this().use_count() == 1) break;
  }
  return is_right;
}

bool ClientSession::take_one(std::string_view text, const RequestId* only) {
  const std::expected<Message, MessageError> message = parser_.parse(text);
  if (!message) {
    if (only != nullptr && response_id_of(text) != *only) text = {};
    on_unreadable(text, message.error().error);
    return true;
  }
  switch (message->kind) {
    case MessageKind::response:
      if (only != nullptr && *only != message->id) return false;
      on_response(*message);
      break;
    case MessageKind::request:
      server_requests_.on_request(*message, request_of(only));
      break;
    case MessageKind::notification:
      on_notification(*message, only);
      break;
  }
  return true;
}

void ClientSession::on_unreadable(std::string_view text, const Error& why) {
  if (const auto left_out = logged_faults_.take()) {
    log_warning("a server has sent what is no message",
                {{"why", std::string_view(why.message)}, {"left_out", *left_out}});
  }
  ++faults_;
  last_fault_ = why.message;
  // If it was to be an answer, nobody waits for it in vain.
  unanswered(response_id_of(text),
             {kInternalError, "The server's answer cannot be read: " + why.message, {}});
}

void ClientSession::on_response(const Message& message) {
  const Number number = requests_.number_of(message.id);
  if (number == 0) {
    const json::object* const about = object_at(*message.body, "result");
    if (about != nullptr && message.id == late_probe_) {
      return handshake_.on_late_answer(own_copy(*about));
    }
    log_debug("a server has answered what nobody waits for",
              {{"id", std::string_view(message.id)}});
    return;
  }
  OpenRequest& request = *requests_.find(number);
  if (auto error = error_of(*message.body)) return on_error(number, request, *std::move(error));
  const json::object* const result = object_at(*message.body, "result");
  if (result == nullptr) {
    return end(number, fail(kInternalError, "The server's answer has no object as its result"));
  }
  const std::string_view type =
      server_.revision->result_type ? text_at(*result, "resultType") : std::string_view();
  if (type == "input_required") return on_input_required(number, *result);
  if (type == "task" && !request.options.may_become_task) {
    return end(number, fail(kInternalError, "The server has made a task of what cannot be one"));
  }
  json::object answer = own_copy(*result);
  if (request.method == "tools/list") {
    tools_.learn(answer, writer_.mirrors_parameters(*server_.revision));
  }
  if (request.rounds == 0 && is_cached(request.method, request.params)) {
    cache_.add(request.method, request.params, answer, message.text.size(), loop_->clock().now());
  }
  if (request.method == "tools/call" && type != "task" && options_.checks_output &&
      server_.revision->structured_output) {
    Result<void> checked = tools_.check_output(text_at(request.params, "name"), answer);
    if (!checked) return end(number, std::unexpected(std::move(checked.error())));
  }
  end(number, std::move(answer));
}

void ClientSession::on_error(Number number, OpenRequest& request, Error error) {
  // A cursor may have become invalid with its list.
  if (request.params.contains("cursor")) cache_.drop(request.method);
  const bool may_have_changed = error.code == kHeaderMismatch && request.method == "tools/call" &&
                                writer_.mirrors_parameters(*server_.revision) &&
                                !std::exchange(request.was_refreshed, true);
  if (!may_have_changed) return end(number, std::unexpected(std::move(error)));
  requests_.end_round(request);
  cache_.drop("tools/list");
  refresh_tools(*this, request.options.idle_timeout,
                [this, number, why = std::move(error)](const Result<void>& outcome) {
                  OpenRequest* const waiting = requests_.find(number);
                  if (waiting == nullptr) return;
                  if (!outcome) return end(number, std::unexpected(why));
                  send_round(number, *waiting);
                });
}

void ClientSession::on_input_required(Number number, const json::object& result) {
  OpenRequest& request = *requests_.find(number);
  requests_.end_round(request);
  if (++request.rounds > options_.max_rounds) {
    return end(number, fail(kLimitReached, "The server asks for more input in each of " +
                                               std::to_string(options_.max_rounds) + " rounds"));
  }
  request.inputs = {};
  json::object& next = request.params;
  next.erase("inputResponses");
  next.erase("requestState");
  if (const json::value* const state = result.if_contains("requestState")) {
    next["requestState"] = *state;
  }
  auto inputs = questions_.inputs_of(result, [](std::string_view /*key*/) { return true; });
  if (!inputs) return end(number, std::unexpected(std::move(inputs.error())));
  if (inputs->empty()) return next_round(number, request);
  for (AskedInput& input : *inputs) {
    std::uint64_t& question = request.open_inputs[input.key];
    std::string key = input.key;
    question = questions_.ask(std::move(input), number,
                              [this, number, key = std::move(key)](Result<json::object> answer) {
                                on_input(number, key, std::move(answer));
                              });
  }
}

void ClientSession::on_input(Number number, const std::string& key, Result<json::object> answer) {
  // A question is withdrawn when its request ends.
  OpenRequest& request = *requests_.find(number);
  request.open_inputs.erase(key);
  if (!answer) {
    // Their answers must not begin another round before the request has ended.
    withdraw_inputs(request);
    return end_later(number, std::move(answer));
  }
  request.inputs[key] = std::move(*answer);
  if (request.open_inputs.empty()) next_round(number, request);
}

void ClientSession::next_round(Number number, OpenRequest& request) {
  if (!request.inputs.empty()) request.params["inputResponses"] = std::move(request.inputs);
  send_round(number, request);
}

void ClientSession::reply(std::string text) {
  if (lost_) return;
  const Result<void> sent = link_->send({.text = std::move(text), .revision = server_.revision});
  if (sent) return;
  if (const auto left_out = logged_faults_.take()) {
    log_warning("an answer to a server could not be sent",
                {{"why", std::string_view(sent.error().message)}, {"left_out", *left_out}});
  }
}

ClientSession::Number ClientSession::request_of(const RequestId* reply_to) const {
  return reply_to == nullptr ? 0 : requests_.number_of(*reply_to);
}

void ClientSession::on_notification(const Message& message, const RequestId* reply_to) {
  const json::object& params = params_of(message);
  if (message.method == "notifications/cancelled") return server_requests_.on_cancelled(message);
  if (message.method == "notifications/progress") {
    const json::value* const token = params.if_contains("progressToken");
    const Number number = token == nullptr ? 0 : requests_.number_of(to_json(*token));
    OpenRequest* const request = requests_.find(number);
    // Tokens of tasks may be those of another session.
    const bool is_progress = request != nullptr && !is_handshake(request->method) &&
                             (related_task(params).empty() || request->options.may_become_task);
    if (is_progress) {
      expect(number, *request);
      // The callback may end the request.
      if (const auto on_progress = request->callbacks.on_progress) on_progress(own_copy(params));
      return;
    }
  }
  if (message.method != "notifications/progress") cache_.on_notification(message.method, params);
  const bool is_taken = activities_.on_notification(message.method, params);
  if (is_taken || message.method == "notifications/progress") return;
  const OpenRequest* const request = requests_.find(request_of(reply_to));
  const auto told = request != nullptr && request->callbacks.on_notification
                        ? request->callbacks.on_notification
                        : options_.on_notification;
  if (told) told(message.method, own_copy(params));
}

void ClientSession::on_unanswered(const RequestId& id, const Error& why) {
  const OpenRequest* const request = requests_.find(requests_.number_of(id));
  if (request != nullptr) unanswered(id, explained(*request, why));
}

void ClientSession::on_broken_off(const RequestId& id, const Error& why) {
  const Number number = requests_.number_of(id);
  OpenRequest* const request = requests_.find(number);
  if (request == nullptr) return;
  Error explanation = explained(*request, why);
  // Legacy links resume the streams of their answers.
  const bool may_try = server_.revision->era == Era::modern && !handshake_.is_running();
  if (!may_try || !reissue(number, *request, explanation)) unanswered(id, explanation);
}

bool ClientSession::reissue(Number number, OpenRequest& request, Error& why) {
  const bool is_call = request.method == "tools/call";
  const bool may_be_repeated = is_call ? tools_.may_be_repeated(text_at(request.params, "name"))
                                       : only_reads(request.method);
  if (!may_be_repeated) {
    if (is_call) {
      why.message +=
          "; the call was not sent again, because its tool is not known to be "
          "idempotent or read-only";
    }
    return false;
  }
  const RequestCallbacks& callbacks = request.callbacks;
  const bool hears_parts = callbacks.on_progress || callbacks.on_notification;
  if (hears_parts && !callbacks.on_reissued) return false;
  const std::optional<Duration> wait = request.reissues.next();
  if (!wait) return false;
  requests_.end_round(request);
  requests_.later(request, *wait, [this, number] { send_round(number, *requests_.find(number)); });
  if (const auto told = request.callbacks.on_reissued) told();
  return true;
}

Error ClientSession::explained(const OpenRequest& request, Error why) const {
  if (faults_ > request.faults) {
    why.message += "; the server has sent a message that cannot be read: " + last_fault_;
  }
  return why;
}

void ClientSession::unanswered(const RequestId& id, const Error& why) {
  const std::shared_ptr<ClientSession> keep = shared_from_this();
  const Number number = requests_.number_of(id);
  if (number == 0) return;
  const bool is_connecting =
      handshake_.is_running() && is_handshake(requests_.find(number)->method);
  if (!is_connecting || !is_about_access(why.code)) return end(number, std::unexpected(why));
  // Nothing else that is sent to this server would be answered.
  remove(number);
  handshake_.fail(why);
}

bool ClientSession::awaits(const RequestId& id) const {
  return requests_.number_of(id) != 0;
}

void ClientSession::on_listening() {
  if (const auto told = options_.on_listening) told();
}

void ClientSession::on_lost(const Error& why) {
  const std::shared_ptr<ClientSession> keep = shared_from_this();
  if (handshake_.takes_for_legacy(why) && link_->reopen()) {
    remove_all();
    return handshake_.fall_back();
  }
  lost_ = why;
  // Each in a task of its own, because each may destroy the session or begin requests.
  server_requests_.withdraw_all();
  for (const auto& [number, activity] : activities_.all()) end_later(number, std::unexpected(why));
  for (const auto& [number, request] : requests_.all()) end_later(number, std::unexpected(why));
  loop_->post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->handshake_.fail(*self->lost_);
  });
  loop_->post([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    if (const auto told = std::exchange(self->options_.on_lost, {})) told(*self->lost_);
  });
}

}  // namespace sluice

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "client/reply.hpp"
#include "client/session/client_session.hpp"
#include "client/session/task_follower.hpp"
#include "client/session/tool_refresh.hpp"
#include "core/log/log.hpp"
#include "json/lone_surrogates.hpp"
#include "json/members.hpp"
#include "protocol/error_codes.hpp"
#include "protocol/task.hpp"
#include "protocol/tool_result.hpp"
#include "rpc/error_codes.hpp"

// What a session hears of its link: the server's messages, and that there will be none.

namespace sluice {
namespace {

/// How long a server may take to say whether it knows the session.
constexpr Duration kDoubtPatience = std::chrono::seconds(30);
/// How long it is not asked for that again.
constexpr Duration kDoubtPause = std::chrono::seconds(60);

/// Moves the values of an object to memory of their own.
void move_to_heap(json::object& object) {
  if (object.storage() == json::storage_ptr()) return;
  json::object copy(object, json::storage_ptr());
  std::destroy_at(&object);
  std::construct_at(&object, std::move(copy));
}

/// A copy that outlives its message. A plain copy would use the memory of the parser too.
json::object own_copy(const json::object& of) {
  return {of, json::storage_ptr()};
}

}  // namespace

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
  std::expected<Message, MessageError> message = parser_.parse(text);
  const auto repaired = message ? std::nullopt : without_lone_surrogates(text);
  if (repaired) {
    text = *repaired;
    message = parser_.parse(text);
  }
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
      if (!is_too_late(*message, only)) {
        on_request(*message, request_of(only));
      } else if (server_.revision->era == Era::legacy) {
        server_requests_.refuse(message->id, "The call that this belongs to has been answered");
      }
      break;
    case MessageKind::notification:
      if (!is_too_late(*message, only)) on_notification(*message, only);
      break;
  }
  return true;
}

bool ClientSession::is_too_late(const Message& message, const RequestId* reply_to) const {
  if (reply_to == nullptr || request_of(reply_to) != 0) return false;
  if (server_.revision->era == Era::modern) return true;
  const bool is_for_all = message.method == "ping" || message.method.ends_with("/list_changed") ||
                          message.method == "notifications/resources/updated";
  // These say by themselves whose they are.
  const bool is_named =
      message.method == "notifications/progress" || !related_task(params_of(message)).empty();
  return options_.is_shared && !reply_to->empty() && !is_for_all && !is_named;
}

void ClientSession::on_request(const Message& message, Number number) {
  OpenRequest* const request = message.method == "ping" ? nullptr : requests_.find(number);
  if (request != nullptr && request->session != sessions_) return end_asked(number);
  if (request != nullptr) request->was_asked = true;
  server_requests_.on_request(message, number);
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
  // A server of 2025-11-25 makes a task only of what asks for one.
  const bool is_task =
      type == "task" || (request.params.contains("task") && created_task(*result) != nullptr);
  if (request.method == "tools/call" && !is_task && options_.checks_output &&
      server_.revision->structured_output) {
    Result<void> checked = tools_->check_output(text_at(request.params, "name"), *result);
    if (!checked) return end(number, std::unexpected(std::move(checked.error())));
  }
  const bool is_list = request.method == "tools/list";
  const bool is_kept = request.rounds == 0 && is_cached(request.method, request.params);
  if (request.callbacks.on_result && !is_list && !is_kept) return end_with(number, *result);
  json::object answer = own_copy(*result);
  if (is_list) tools_->learn(answer, writer_.mirrors_parameters(*server_.revision));
  if (is_kept) {
    cache_.add(request.method, request.params, answer, message.text.size(), loop_->clock().now());
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
  end_round(number, request);
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
  end_round(number, request);
  if (++request.rounds > options_.max_rounds) {
    return end(number, fail(kLimitReached, "The server asks for more input in each of " +
                                               std::to_string(options_.max_rounds) + " rounds"));
  }
  request.inputs = {};
  request.next_part = 0;
  // They may be in memory that is only freed as a whole, and each round adds to them.
  if (request.rounds == 1) move_to_heap(request.params);
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
      if (const auto on_progress = request->callbacks.on_progress) on_progress(params);
      return;
    }
  }
  if (message.method == kPartialResult) return on_partial_result(params);
  if (message.method != "notifications/progress") cache_.on_notification(message.method, params);
  const bool is_taken = activities_.on_notification(message.method, params);
  if (is_taken || message.method == "notifications/progress") return;
  const OpenRequest* const request = requests_.find(request_of(reply_to));
  if (request != nullptr && request->callbacks.on_log &&
      message.method == "notifications/message") {
    const auto on_log = request->callbacks.on_log;
    return on_log(params);
  }
  const auto told = request != nullptr && request->callbacks.on_notification
                        ? request->callbacks.on_notification
                        : options_.on_notification;
  if (told) told(message.method, own_copy(params));
}

void ClientSession::on_partial_result(const json::object& params) {
  const auto ignore = [](std::string_view why) {
    log_debug("a partial result is ignored", {{"why", why}});
  };
  const std::optional<PartialResult> part = read_partial_result(params);
  if (!part) return ignore("it is not what the draft says");
  const Number number = requests_.number_of(part->token);
  OpenRequest* const request = requests_.find(number);
  if (request == nullptr || !request->callbacks.on_partial_result ||
      part->token != std::to_string(request->id)) {
    return ignore("nobody has asked for it");
  }
  // A round that is sent again brings again what came before the connection broke.
  if (part->seq < request->next_part) return ignore("it was seen");
  const std::uint64_t missing = part->seq - std::exchange(request->next_part, part->seq + 1);
  expect(number, *request);
  // The callback may end the request.
  const auto told = request->callbacks.on_partial_result;
  told(params, missing);
}

void ClientSession::on_unanswered(const RequestId& id, const Error& why) {
  const Number number = requests_.number_of(id);
  const OpenRequest* const request = requests_.find(number);
  if (request == nullptr) return;
  const std::shared_ptr<ClientSession> keep = shared_from_this();
  const Error explanation = explained(*request, why);
  unanswered(id, explanation);
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
  const bool may_be_repeated = is_call ? tools_->may_be_repeated(text_at(request.params, "name"))
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
  const bool hears_parts = callbacks.on_progress || callbacks.on_notification || callbacks.on_log ||
                           callbacks.on_partial_result;
  if (hears_parts && !callbacks.on_reissued) return false;
  const std::optional<Duration> wait = request.reissues.next();
  if (!wait) return false;
  end_round(number, request);
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
  const bool is_about_probe = is_connecting && is_probe(requests_.find(number)->method);
  if (!is_connecting || !is_about_access(why.code, is_about_probe)) {
    return end(number, std::unexpected(why));
  }
  // Nothing else that is sent to this server would be answered.
  remove(number);
  handshake_.fail(why);
}

bool ClientSession::awaits(const RequestId& id) const {
  return requests_.number_of(id) != 0;
}

void ClientSession::on_session_doubted() {
  // Whatever is under way finds out by itself. A server may forget each session at once.
  const TimePoint now = loop_->clock().now();
  if (handshake_.is_running() || !has_session() || requests_.size() > 0 || now < next_doubt_) {
    return;
  }
  next_doubt_ = now + kDoubtPause;
  // If the session is over, the answer says so, and begins another.
  begin("ping", {}, {.timeout = kDoubtPatience}, {});
}

void ClientSession::on_listening() {
  if (const auto told = options_.on_listening) told();
}

void ClientSession::on_position(const RequestId& id, std::string_view session,
                                std::string_view last_event) {
  const Number number = requests_.number_of(id);
  OpenRequest* const request = requests_.find(number);
  if (request == nullptr || !request->callbacks.on_position) return;
  // Behind a question that is unanswered nobody can go on.
  if (server_requests_.is_our_turn(number)) return;
  const std::shared_ptr<ClientSession> keep = shared_from_this();
  request->can_be_left = true;
  const auto told = request->callbacks.on_position;
  told(to_text({.revision = server_.revision,
                .server = link_->server(),
                .session = std::string(session),
                .tool = std::string(text_at(request->params, "name")),
                .request = id,
                .last_event = std::string(last_event)}));
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

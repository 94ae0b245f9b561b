#include "client/session/client_session.hpp"

#include <charconv>
#include <system_error>
#include <utility>
#include <vector>

#include "client/session/change_watch.hpp"
#include "client/session/task_follower.hpp"
#include "core/log/log.hpp"
#include "net/http/status_codes.hpp"
#include "protocol/error_codes.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
ClientSession::ClientSession(Executor& loop, std::unique_ptr<ServerLink> link, Options options,
                             std::shared_ptr<ListedTools> tools)
    : loop_(&loop),
      options_(std::move(options)),
      handshake_(*this, options_),
      questions_(loop, options_),
      server_requests_(
          questions_, options_.max_questions, [this](std::string text) { reply(std::move(text)); },
          [this](Number request) { on_turn(request); }),
      requests_(loop, [this](Number number, const char* why) { give_up(number, why); }),
      tools_(std::move(tools)),
      link_(std::move(link)),
      writer_(options_, *tools_, link_->carries_headers()) {}

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
  // A way to the server that takes long says nothing about the server.
  if (is_probe(method) && link_->tells_connected()) patience = options_.connect_timeout;
  begin(std::move(method), std::move(params), {.idle_timeout = patience, .timeout = {}},
        {.on_progress = {}, .on_answer = [this](Result<json::object> answer) {
           if (!lost_) handshake_.on_answer(std::move(answer));
         }});
}

void ClientSession::on_connected(const RequestId& id) {
  const Number number = requests_.number_of(id);
  OpenRequest* const request = requests_.find(number);
  if (request == nullptr || !handshake_.is_running() || !is_probe(request->method)) return;
  request->options.idle_timeout = options_.probe_timeout;
  expect(number, *request);
}

void ClientSession::later(UniqueFunction<void()> task) {
  loop_->post([weak = weak_from_this(), task = std::move(task)]() mutable {
    if (const auto self = weak.lock()) task();
  });
}

void ClientSession::to_new_session(const RequestId& id, bool is_current) {
  const std::shared_ptr<ClientSession> keep = shared_from_this();
  const Number number = requests_.number_of(id);
  // What was refused may have been the answer to a question.
  if (id.empty() && is_current) end_all_asked();
  if (number == 0) return;
  OpenRequest& request = *requests_.find(number);
  const bool may_renew = renews_ && request.options.renews_session;
  if (request.was_held || is_handshake(request.method) || !may_renew) {
    return end(number, fail(kNotFound, "The server has forgotten the session again"));
  }
  end_round(number, request);
  if (is_current || is_preparing_ || !has_session()) {
    hold(number, request);
    return is_current || !is_preparing_ ? renew() : void();
  }
  request.was_held = true;
  send_round(number, request);
}

void ClientSession::hold(Number number, OpenRequest& request) {
  request.was_held = true;
  requests_.expect(number, request);
  held_.push_back(number);
}

void ClientSession::renew() {
  if (handshake_.is_running()) return;
  // The new session may use the ids of the old one's questions again.
  server_requests_.withdraw_all();
  end_all_asked();
  ++sessions_;
  handshake_.renew(*server_.revision, [this](Result<ServerDescription> outcome) {
    if (!outcome) return renewed(std::unexpected(std::move(outcome.error())));
    server_ = *std::move(outcome);
    renewed({});
  });
}

void ClientSession::end_asked(Number number) {
  const OpenRequest& request = *requests_.find(number);
  link_->drop(std::to_string(request.id));
  end_later(number, fail(kNotFound,
                         "The server has forgotten the session in which it asked something for " +
                             request.method + ", so it gets no answer; make the request again"));
}

void ClientSession::end_all_asked() {
  for (const auto& [number, request] : requests_.all()) {
    if (request.was_asked && request.session == sessions_) end_asked(number);
  }
}

void ClientSession::renewed(const Result<void>& outcome) {
  has_no_session_ = !outcome;
  is_preparing_ = outcome && options_.before_repeating != nullptr;
  if (!outcome) {
    if (options_.on_not_renewed && is_refusal(outcome.error())) {
      later([this, why = outcome.error()] { options_.on_not_renewed(why); });
    }
    for (const Number number : std::exchange(held_, {})) {
      if (requests_.find(number) != nullptr) end_later(number, std::unexpected(outcome.error()));
    }
    return;
  }
  if (!is_preparing_) repeat_held();
  activities_.on_renewed();
  if (options_.on_renewed) options_.on_renewed();
  if (!is_preparing_) return;
  options_.before_repeating([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->repeat_held();
  });
}

void ClientSession::repeat_held() {
  if (!has_session()) return;  // this one is forgotten too
  is_preparing_ = false;
  for (const Number number : std::exchange(held_, {})) {
    if (OpenRequest* const request = requests_.find(number)) send_round(number, *request);
  }
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
  const bool is_beyond_limit = is_handshake(method) || options.is_probe;
  const std::optional<Error> refused = is_beyond_limit && !lost_ ? std::nullopt : refusal();
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
    renew();
  } else {
    send_round(number, request);
  }
  return number;
}

std::shared_ptr<ClientSession> ClientSession::take_up(const StreamPosition& from,
                                                      const RequestOptions& options,
                                                      RequestCallbacks callbacks) {
  std::int64_t id = 0;
  const char* const end = from.request.data() + from.request.size();
  const auto [read, error] = std::from_chars(from.request.data(), end, id);
  if (error != std::errc() || read != end || id <= 0) return nullptr;
  std::unique_ptr<ServerLink> link = link_->take_up(from);
  if (link == nullptr) return nullptr;
  Options beside = options_;
  beside.first_question = ++beside_ << 32U;
  beside.on_renewed = {};
  beside.on_lost = {};
  const auto session =
      std::make_shared<ClientSession>(*loop_, std::move(link), std::move(beside), tools_);
  session->renew_no_more();
  session->server_ = {.revision = from.revision, .about = server_.about};
  session->last_number_ = kTakenUp;
  OpenRequest& request = session->requests_.add(kTakenUp, {.method = "tools/call",
                                                           .params = {{"name", from.tool}},
                                                           .options = cut_to_forever(options),
                                                           .callbacks = std::move(callbacks),
                                                           .can_be_left = true});
  session->requests_.take_up_round(kTakenUp, request, id);
  session->link_->open(*session);
  session->expect(kTakenUp, request);
  return session;
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

void ClientSession::end_round(Number number, OpenRequest& request) {
  requests_.end_round(request);
  pause_round(number, request);
}

/// Sends the next round, or says later why that is not possible. Its id is also its progress token,
/// and the token of its partial results.
void ClientSession::send_round(Number number, OpenRequest& request) {
  requests_.begin_round(number, request);
  request.session = sessions_;
  request.was_asked = false;
  OutgoingMessage message =
      writer_.write({.method = request.method,
                     .params = request.params,
                     .id = std::to_string(request.id),
                     .may_become_task = request.options.may_become_task,
                     .wants_parts = request.callbacks.on_partial_result != nullptr},
                    *server_.revision);
  message.memory = std::exchange(request.options.memory, nullptr);
  Result<void> sent = link_->send(std::move(message));
  if (!sent) return end_later(number, std::unexpected(std::move(sent.error())));
  expect(number, request);
  pause_round(number, request);
}

void ClientSession::expect(Number number, OpenRequest& request) {
  const bool is_unread = link_->shares_connection() ? paused_ > 0 : !request.paused.empty();
  // Questions do not keep connecting alive: they may not come before it is done.
  const bool waits_for_us =
      !is_handshake(request.method) && (is_unread || server_requests_.is_our_turn(number));
  waits_for_us ? requests_.stop_waiting(request) : requests_.expect(number, request);
}

void ClientSession::on_turn(Number only) {
  for (const auto& [number, each] : requests_.all()) {
    const bool is_concerned = each.id != 0 && (only == 0 || only == number);
    if (is_concerned) expect(number, *requests_.find(number));
  }
}

Result<void> ClientSession::notify(std::string_view method, json::object params,
                                   std::shared_ptr<void> memory) {
  OutgoingMessage message =
      writer_.write({.method = std::string(method), .params = params}, *server_.revision);
  message.memory = std::move(memory);
  return link_->send(std::move(message));
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

bool ClientSession::pause(Number number, bool is_paused) {
  OpenRequest* const request = requests_.find(number);
  if (request == nullptr) return false;
  request->is_paused = is_paused;
  pause_round(number, *request);
  return true;
}

void ClientSession::pause_round(Number number, OpenRequest& request) {
  RequestId now = request.is_paused && request.id != 0 ? std::to_string(request.id) : RequestId();
  if (now == request.paused) return;
  const RequestId before = std::exchange(request.paused, std::move(now));
  paused_ += request.paused.empty() ? 0 : 1;
  paused_ -= before.empty() ? 0 : 1;
  if (!request.paused.empty()) link_->pause(request.paused, true);
  if (!before.empty()) link_->pause(before, false);
  // Only the first and the last one stop and begin the reading of a shared connection.
  const bool concerns_all = link_->shares_connection();
  if (!concerns_all || paused_ <= 1) on_turn(concerns_all ? 0 : number);
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

void ClientSession::leave(Number number) {
  const OpenRequest* const request = requests_.find(number);
  if (request == nullptr || !request->can_be_left || request->id == 0) return cancel(number);
  link_->leave_answer(std::to_string(request->id));
  remove(number);
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
  const bool is_told = link_->drop(std::to_string(request.id));
  if (is_told || request.session != sessions_) return;
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

void ClientSession::end_with(Number number, const json::object& result) {
  const OpenRequest request = remove(number);
  const std::shared_ptr<ClientSession> keep = shared_from_this();
  request.callbacks.on_result(result);
}

void ClientSession::end_later(Number number, Result<json::object> answer) {
  loop_->post([weak = weak_from_this(), number, answer = std::move(answer)]() mutable {
    if (const auto self = weak.lock()) self->end(number, std::move(answer));
  });
}

}  // namespace sluice

#include "proxy/upstream/upstream_session.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/log/log.hpp"
#include "core/log/over_limit.hpp"
#include "json/members.hpp"
#include "net/http/status_codes.hpp"
#include "protocol/error_codes.hpp"

namespace sluice {
namespace {

/// How long a server may take to say that it still lives.
constexpr Duration kLifeSign = std::chrono::seconds(30);

bool has_capability(const ServerDescription& server, std::string_view name) {
  const json::object* const capabilities = object_at(server.about, "capabilities");
  return capabilities != nullptr && capabilities->contains(name);
}

}  // namespace

UpstreamSession::UpstreamSession(Executor& loop, std::shared_ptr<Upstream> upstream,
                                 ClientIdentity client, UpstreamListener& listener, bool is_shared)
    : loop_(&loop),
      upstream_(std::move(upstream)),
      client_(std::move(client)),
      listener_(&listener),
      level_([this](LoggingLevel level, bool renews,
                    LevelTeller::Told told) { return tell_level(level, renews, std::move(told)); },
             [this] { send_held(); }),
      is_shared_(is_shared),
      feed_(loop, upstream_, *this),
      check_(loop, [this] { check(); }) {}

UpstreamSession::UpstreamSession(UpstreamListener& listener, const UpstreamSession& replaced)
    : UpstreamSession(*replaced.loop_, replaced.upstream_, replaced.client_, listener,
                      replaced.is_shared_) {
  session_number_ = replaced.session_number_;
  payer_ = replaced.payer_;
  has_state_ = replaced.has_state_;
  was_left_out_ = true;
  is_successor_ = true;
  if (const auto level = replaced.level()) set_level(*level);
}

UpstreamSession::~UpstreamSession() {
  for (const auto timer : {timer_, patience_, pause_timer_}) {
    if (timer != 0) loop_->cancel(timer);
  }
  feed_.attach(nullptr);
  if (trial_ != nullptr) end_session(std::move(trial_));
  if (session_ != nullptr) end_session(std::move(session_));
}

void UpstreamSession::close() {
  if (timer_ != 0) loop_->cancel(std::exchange(timer_, 0));
  check_.end();
  feed_.attach(nullptr);
  const auto requests = std::exchange(requests_, {});
  const auto opening = std::exchange(opening_, {});
  const auto waiting = std::exchange(waiting_, {});
  held_.clear();
  if (trial_ != nullptr) end_session(std::move(trial_));
  if (session_ != nullptr) end_session(std::move(session_));
}

void UpstreamSession::end_session(std::shared_ptr<ClientSession> session) {
  ClientSession& closing = *session;
  upstream_->ending()->begin();
  closing.close([loop = loop_, session = std::move(session), program = std::move(program_),
                 ending = upstream_->ending()]() mutable {
    loop->post([session = std::move(session), program = std::move(program), ending]() mutable {
      session.reset();
      program.reset();
      ending->end();
    });
  });
}

// --- opening and losing it ----------------------------------------------------------------------

void UpstreamSession::when_open(Opened then) {
  if (is_open()) return then({});
  if (is_retired_) {
    return then(std::unexpected(upstream_->explained({kLostConnection, "it was replaced", {}})));
  }
  is_needed_ = true;
  opening_.push_back(std::move(then));
  if (opening_.size() == 1) connect();
}

ClientSessionOptions UpstreamSession::session_options() {
  ClientSessionOptions options{
      .info = client_.info,
      .capabilities = json::object(*client_.capabilities, json::storage_ptr()),
      .revision = upstream_->options().revision,
      .is_shared = is_shared_,
      .connect_timeout = upstream_->options().connect_timeout};
  const auto weak = weak_from_this();
  const SessionNumber number = ++session_number_;
  options.on_question = [weak, number](ServerQuestion question) {
    const auto self = weak.lock();
    if (self == nullptr || !self->is_current(number)) return;
    self->heard();
    question.number = own_number(number, question.number);
    self->offer(std::move(question));
  };
  options.on_withdrawn = [weak, number](std::uint64_t question) {
    if (const auto self = weak.lock()) self->on_withdrawn(own_number(number, question));
  };
  options.on_notification = [weak, number](std::string_view method, const json::object& params) {
    const auto self = weak.lock();
    if (self != nullptr && self->is_current(number)) self->on_notification(method, params);
  };
  options.on_renewed = [weak, number] {
    const auto self = weak.lock();
    if (self == nullptr || !self->is_current(number) || self->is_retired_) return;
    log_warning("a server behind the proxy had forgotten its session; there is a new one",
                {{"server", std::string_view(self->upstream_->options().label)}});
    self->check_.on_renewed();
    self->level_.begin_session(self->has_levels());
    self->feed_.attach(self->session_);
    self->has_asked_ = !self->requests_.empty();  // since all may have changed
    self->listener_->on_renewed();
  };
  options.before_repeating = [weak](std::function<void()> go_on) {
    if (const auto self = weak.lock()) self->repeat_later(std::move(go_on));
  };
  options.on_listening = [weak] {
    const auto self = weak.lock();
    if (self != nullptr && self->is_open()) self->on_listening();
  };
  options.on_not_renewed = [weak, number](const Error& why) {
    const auto self = weak.lock();
    if (self == nullptr || !self->is_current(number) || self->is_retired_) return;
    // It has forgotten the session, and begins no other of its era.
    self->upstream_->on_lost(why);
    self->upstream_->forget_era();
    self->listener_->on_replaced();
  };
  options.on_lost = [weak, number](const Error& why) {
    const auto self = weak.lock();
    if (self != nullptr && self->is_current(number)) self->on_lost(why);
  };
  return options;
}

/// Takes the place of the program that the link starts, if it does. Error: kLimitReached.
Result<void> UpstreamSession::take_program() {
  const bool has_place = program_ != nullptr;
  if (!upstream_->options().starts_program || payer_.programs == nullptr || has_place) return {};
  struct Place {
    std::shared_ptr<ClientQuota> quota;
    ClientQuota::Unit unit;
  };
  auto place = std::make_shared<Place>(payer_.programs, payer_.programs->take(payer_.principal));
  if (!place->unit) {
    return over_limit("The proxy runs " + std::to_string(payer_.programs->limit()) +
                      " programs for you, the most for one client (--programs-per-client); end "
                      "sessions that you do not need with DELETE, or close their connections");
  }
  program_ = std::move(place);
  return {};
}

void UpstreamSession::connect() {
  const auto refuse_later = [this](const Error& why) {
    loop_->post([weak = weak_from_this(), why] {
      if (const auto self = weak.lock()) self->opened(std::unexpected(why));
    });
  };
  if (const auto resting = upstream_->resting(loop_->clock().now())) return refuse_later(*resting);
  if (const Result<void> taken = take_program(); !taken) return refuse_later(taken.error());
  Result<std::unique_ptr<ServerLink>> link = upstream_->options().open_link(*loop_);
  if (!link) {
    was_left_out_ = true;
    program_ = nullptr;
    return refuse_later(upstream_->on_not_opened(link.error(), loop_->clock().now(), is_needed_));
  }
  was_hinted_ = upstream_->is_known_as_legacy(loop_->clock().now());
  ClientSessionOptions options = session_options();
  options.expects_legacy = was_hinted_;
  session_ = std::make_shared<ClientSession>(*loop_, std::move(*link), std::move(options));
  session_->connect([weak = weak_from_this()](const Result<ServerDescription>& server) {
    if (const auto self = weak.lock()) self->on_connected(server);
  });
}

void UpstreamSession::on_connected(const Result<ServerDescription>& server) {
  if (session_ == nullptr) return;
  const bool has_died =
      upstream_->options().starts_program && !server && server.error().code == kLostConnection;
  if (!server && was_hinted_ && (has_died || is_refusal(server.error()))) {
    upstream_->forget_era();
    const std::shared_ptr<void> place = program_;
    end_session(std::move(session_));
    program_ = place;  // it is for the same client
    return connect();
  }
  if (!server) {
    was_left_out_ = true;
    const Error why = upstream_->on_not_opened(server.error(), loop_->clock().now(), is_needed_);
    end_session(std::move(session_));
    return opened(std::unexpected(why));
  }
  upstream_->on_connected(*server->revision, loop_->clock().now());
  const bool is_another = server_.revision != nullptr || std::exchange(was_left_out_, false);
  server_ = {server->revision, json::object(server->about, json::storage_ptr())};
  // Over a shared connection, what is said of one request may come during another.
  if (server_.revision->era == Era::legacy || session_->shares_connection()) has_state_ = true;
  heard();
  if (std::exchange(is_successor_, false)) check_.want(waits_);
  has_asked_ = false;
  level_.begin_session(has_levels());
  feed_.attach(session_);
  if (is_another) {
    listener_->on_renewed();
  } else if (server_.revision->era == Era::legacy) {
    on_listening();
  }
  opened({});
}

/// A modern server may acknowledge again although nothing was missed. A legacy server says that it
/// listens only after a gap.
void UpstreamSession::on_listening() {
  const bool is_legacy = server_.revision->era == Era::legacy;
  const ChangeFeed::Unheard missed = is_legacy ? feed_.wanted() : feed_.take_unheard();
  // The client may have changed something by its requests.
  const bool may_have_changed = has_asked_ || missed.is_after_break;
  listener_->on_listening(may_have_changed ? missed : ChangeFeed::Unheard());
}

void UpstreamSession::opened(const Result<void>& outcome) {
  const auto keep = shared_from_this();
  for (const Opened& then : std::exchange(opening_, {})) then(outcome);
}

void UpstreamSession::on_lost(const Error& why) {
  if (session_ == nullptr) return;
  const auto keep = shared_from_this();
  if (!is_retired_) upstream_->on_lost(why);
  is_probing_ = false;
  is_era_asked_ = false;
  waiting_.clear();
  held_.clear();
  level_.end_session();
  feed_.attach(nullptr);
  end_session(std::move(session_));
  // The link's own end has answered those that were sent before.
  for (auto& [number, request] : std::exchange(requests_, {})) {
    request.call->on_answer(std::unexpected(upstream_->explained(why)));
  }
}

void UpstreamSession::want(bool lists, Uris uris, bool listens) {
  waits_ = listens || !uris.empty();
  // Somebody has heard of changes in the session before.
  check_.want(waits_ || is_successor_);
  feed_.want(lists, std::move(uris));
  if (listens && !is_open()) when_open([](const Result<void>&) {});
}

void UpstreamSession::check() {
  if (!is_open()) {
    if (!opening_.empty() || upstream_->resting(loop_->clock().now())) return;
    opening_.emplace_back([](const Result<void>&) {});
    is_needed_ = false;
    connect();
  } else if (server_.revision->era == Era::legacy) {
    session_->begin("ping", {}, {.timeout = kLifeSign},
                    {.on_answer = [weak = weak_from_this()](const Result<json::object>& answer) {
                      const auto self = weak.lock();
                      if (self == nullptr) return;
                      self->check_.on_answered(!answer && answer.error().code == kNotFound);
                      if (!answer) self->doubt_era(answer.error());
                    }});
  }
}

void UpstreamSession::set_level(LoggingLevel level) {
  level_.want(level, is_open() && has_levels());
}

bool UpstreamSession::has_levels() const {
  return server_.revision->era == Era::legacy && has_capability(server_, "logging");
}

std::function<void()> UpstreamSession::tell_level(LoggingLevel level, bool renews,
                                                  LevelTeller::Told told) {
  using Outcome = LevelTeller::Outcome;
  const ClientSession::Number number = session_->begin(
      "logging/setLevel", {{"level", to_string(level)}},
      {.timeout = kLifeSign, .renews_session = renews},
      {.on_answer = [weak = weak_from_this(),
                     told = std::move(told)](const Result<json::object>& answer) {
        const auto self = weak.lock();
        if (self == nullptr) return;
        const bool is_over = !answer && answer.error().code == kNotFound;
        told(answer ? Outcome::taken : is_over ? Outcome::session_over : Outcome::refused);
      }});
  return [this, number] {
    if (session_ != nullptr) session_->cancel(number);
  };
}

void UpstreamSession::repeat_later(std::function<void()> go_on) {
  if (level_.is_answered(level_.round())) return go_on();
  repeating_.push_back(std::move(go_on));
}

// --- requests -----------------------------------------------------------------------------------

std::uint64_t UpstreamSession::add(std::shared_ptr<UpstreamCall> call) {
  const std::uint64_t number = ++last_number_;
  if (requests_.empty()) heard();
  has_asked_ = true;
  requests_.emplace(number, Request{.number = 0, .call = std::move(call)});
  watch();
  offer_waiting_later();
  return number;
}

std::uint64_t UpstreamSession::begin(const std::string& method, json::object params,
                                     std::shared_ptr<UpstreamCall> call, bool may_become_task,
                                     std::shared_ptr<void> memory) {
  if (has_levels()) level_.tell_again();
  const std::uint64_t number = add(std::move(call));
  Held request{number,          method,         std::move(params),
               may_become_task, level_.round(), std::move(memory)};
  if (level_.is_answered(request.level)) {
    send(std::move(request));
  } else {
    held_.push_back(std::move(request));
  }
  return number;
}

std::uint64_t UpstreamSession::follow(const std::string& id, std::shared_ptr<UpstreamCall> call) {
  const std::uint64_t number = add(std::move(call));
  requests_.at(number).number = session_->follow_task(id, {}, callbacks_of(number));
  return number;
}

void UpstreamSession::send_held() {
  for (const auto& go_on : std::exchange(repeating_, {})) go_on();
  // Each waits for the level that was set before it, and for no later one.
  const auto later = std::ranges::find_if(
      held_, [this](const Held& each) { return !level_.is_answered(each.level); });
  std::vector<Held> due(std::move_iterator(held_.begin()), std::move_iterator(later));
  held_.erase(held_.begin(), later);
  for (Held& each : due) {
    if (requests_.contains(each.number)) send(std::move(each));
  }
}

void UpstreamSession::send(Held request) {
  requests_.at(request.number).number =
      session_->begin(std::move(request.method), std::move(request.params),
                      {.idle_timeout = {},
                       .may_become_task = request.may_become_task,
                       .memory = std::move(request.memory)},
                      callbacks_of(request.number));
}

RequestCallbacks UpstreamSession::callbacks_of(std::uint64_t number) {
  return {.on_progress =
              [this, number](const json::object& said) {
                if (const auto call = heard_of(number)) call->on_progress(said);
              },
          .on_notification =
              [this, number](std::string_view said, const json::object& with) {
                if (const auto call = heard_of(number)) call->on_notification(said, with);
              },
          .on_answer =
              [this, number](Result<json::object> answer) { on_answer(number, std::move(answer)); },
          .on_result =
              [this, number](const json::object& result) {
                const auto call = take(number);
                if (call == nullptr) return;
                // Otherwise the call may own it alone.
                const auto keep = is_retired_ ? shared_from_this() : nullptr;
                heard();
                call->on_result(result);
                offer_waiting_later();
              }};
}

std::shared_ptr<UpstreamCall> UpstreamSession::heard_of(std::uint64_t number) {
  heard();
  const auto found = requests_.find(number);
  return found == requests_.end() ? nullptr : found->second.call;
}

std::shared_ptr<UpstreamCall> UpstreamSession::take(std::uint64_t number) {
  const auto found = requests_.find(number);
  if (found == requests_.end()) return nullptr;
  std::shared_ptr<UpstreamCall> call = std::move(found->second.call);
  requests_.erase(found);
  return call;
}

void UpstreamSession::pause(std::uint64_t number, bool is_paused) {
  const auto found = requests_.find(number);
  if (found == requests_.end() || session_ == nullptr) return;
  Request& request = found->second;
  const bool was_paused = request.is_paused;
  request.is_paused = session_->pause(request.number, is_paused) && is_paused;
  if (!request.is_paused || was_paused || !session_->shares_connection()) return;
  request.paused_at = loop_->clock().now();
  if (pause_timer_ != 0) return;
  pause_timer_ = loop_->schedule_at(request.paused_at + kLongestPause, [this] {
    pause_timer_ = 0;
    end_long_pauses();
  });
}

bool UpstreamSession::do_others_wait() const {
  const auto waits = [](const auto& each) { return !each.second.is_paused; };
  return (is_shared_ && check_.is_wanted()) || std::ranges::any_of(requests_, waits);
}

void UpstreamSession::end_long_pauses() {
  const auto keep = shared_from_this();
  const TimePoint now = loop_->clock().now();
  const bool do_wait = do_others_wait();
  std::vector<std::uint64_t> due;
  std::optional<TimePoint> next;
  for (auto& [number, request] : requests_) {
    if (!request.is_paused) continue;
    if (!do_wait) request.paused_at = now;
    const TimePoint end = request.paused_at + kLongestPause;
    if (end <= now) {
      due.push_back(number);
    } else {
      next = std::min(next.value_or(end), end);
    }
  }
  for (const std::uint64_t number : due) {
    const auto found = requests_.find(number);
    if (found == requests_.end()) continue;
    const auto call = found->second.call;
    cancel(number);
    call->on_answer(fail(
        kBusy, "What the call has written was not read for " +
                   std::to_string(std::chrono::floor<std::chrono::seconds>(kLongestPause).count()) +
                   " s, and others wait for the connection to its server"));
  }
  if (!next) return;
  pause_timer_ = loop_->schedule_at(*next, [this] {
    pause_timer_ = 0;
    end_long_pauses();
  });
}

void UpstreamSession::cancel(std::uint64_t number) {
  const auto found = requests_.find(number);
  if (found == requests_.end()) return;
  const Request request = std::move(found->second);
  requests_.erase(found);
  std::erase_if(held_, [number](const Held& each) { return each.number == number; });
  if (session_ != nullptr && request.number != 0) session_->cancel(request.number);
  offer_waiting_later();
}

void UpstreamSession::cancel_task(std::string_view id) {
  if (is_open()) session_->begin("tasks/cancel", {{"taskId", id}}, {}, {});
}

void UpstreamSession::on_answer(std::uint64_t number, Result<json::object> answer) {
  const auto call = take(number);
  if (call == nullptr) return;
  const auto keep = shared_from_this();
  if (answer) heard();
  if (!answer) doubt_era(answer.error());
  if (!answer) answer = std::unexpected(upstream_->explained(answer.error()));
  call->on_answer(std::move(answer));
  offer_waiting_later();  // it may be of the task that the call has become, or has not
}

void UpstreamSession::notify(std::string_view method, const json::object& params,
                             std::shared_ptr<void> memory) {
  if (!is_open()) return;
  const Result<void> sent =
      session_->notify(method, json::object(params, json::storage_ptr()), std::move(memory));
  if (!sent) log_debug("a notification could not be sent", {{"why", sent.error().message}});
}

// --- silence ------------------------------------------------------------------------------------

void UpstreamSession::heard() {
  heard_ = loop_->clock().now();
}

void UpstreamSession::watch() {
  const Duration most = upstream_->options().idle_timeout;
  if (timer_ != 0 || most <= Duration() || requests_.empty()) return;
  timer_ = loop_->schedule_at(heard_ + most, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->timer_ = 0;
    if (!self->requests_.empty() && self->session_ != nullptr) self->on_silence();
  });
}

void UpstreamSession::on_silence() {
  const auto is_paused = [](const auto& each) { return each.second.is_paused; };
  if (std::ranges::any_of(requests_, is_paused)) heard();
  if (loop_->clock().now() < heard_ + upstream_->options().idle_timeout) return watch();
  if (is_retired_) {
    return on_lost({kLostConnection, "it was replaced, and the call is not answered", {}});
  }
  if (std::exchange(is_probing_, true)) return;
  ask_for_life([this, asked = loop_->clock().now()](const Result<json::object>& answer) {
    is_probing_ = false;
    if (!answer && heard_ > asked) return watch();
    if (!answer && answer.error().code == kTimedOut) {
      return on_lost({kLostConnection, "it hangs: it answers neither a request nor a ping", {}});
    }
    heard();
    watch();
    if (!answer) doubt_era(answer.error());
  });
}

void UpstreamSession::ask_for_life(std::function<void(const Result<json::object>&)> then) {
  session_->begin(server_.revision->era == Era::legacy ? "ping" : "server/discover", {},
                  {.idle_timeout = kLifeSign, .is_probe = true},
                  {.on_answer = [weak = weak_from_this(), number = session_number_,
                                 then = std::move(then)](const Result<json::object>& answer) {
                    const auto self = weak.lock();
                    if (self != nullptr && self->is_current(number)) then(answer);
                  }});
}

}  // namespace sluice

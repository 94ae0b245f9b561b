#include "client/api/client_connection.hpp"

#include <future>
#include <map>
#include <stdexcept>
#include <stop_token>
#include <utility>

#include "client/api/elicitation_defaults.hpp"
#include "client/session/change_watch.hpp"
#include "core/log/log.hpp"
#include "json/members.hpp"
#include "protocol/logging_level.hpp"
#include "rpc/error_codes.hpp"

namespace sluice::detail {
namespace {

/// What the client can be asked, by what it has functions for.
json::object capabilities_of(const ClientOptions& options) {
  json::object capabilities(options.capabilities, json::storage_ptr());
  if (options.on_elicitation && !capabilities.contains("elicitation")) {
    capabilities["elicitation"] = {{"form", json::object()}, {"url", json::object()}};
  }
  if (options.on_sampling && !capabilities.contains("sampling")) {
    capabilities["sampling"] = json::object();
  }
  if (options.on_roots && !capabilities.contains("roots")) capabilities["roots"] = json::object();
  return capabilities;
}

/// Connecting, which ends once. Used on the loop alone, but for the future.
struct Attempt {
  std::promise<Result<ServerDescription>> outcome;
  bool is_over = false;

  void end(Result<ServerDescription> description) {
    if (!std::exchange(is_over, true)) outcome.set_value(std::move(description));
  }
};

Result<json::object> answer_of(const ClientAnswer& answer, const json::object& params,
                               LogLimit& failures) {
  try {
    json::object result(answer(params), json::storage_ptr());
    fill_in_defaults(params, result);
    return result;
  } catch (const Error& error) {
    return std::unexpected(error);
  } catch (...) {
    log_exception(failures, "the answer to a server's question has failed");
  }
  return fail(kInternalError, "The client could not answer");
}

}  // namespace

ClientSessionOptions ClientConnection::session_options(ClientOptions options) {
  ClientSessionOptions out{.info = options.info,
                           .capabilities = capabilities_of(options),
                           .revision = options.revision,
                           .asks_first = false,
                           .probe_timeout = options.probe_timeout,
                           .connect_timeout = options.connect_timeout,
                           .max_requests = options.max_requests,
                           .max_rounds = options.max_rounds,
                           .caches = options.caching,
                           .checks_output = options.checks_output};
  auto answers = std::make_shared<std::map<std::string, ClientAnswer, std::less<>>>();
  const auto add = [&answers](const char* method, ClientAnswer& answer) {
    if (answer) answers->emplace(method, std::move(answer));
  };
  add("elicitation/create", options.on_elicitation);
  add("sampling/createMessage", options.on_sampling);
  add("roots/list", options.on_roots);
  if (!answers->empty()) {
    out.on_question = [this, answers](ServerQuestion question) {
      const auto found = answers->find(question.method);
      if (found == answers->end()) {
        return question.answer(fail(kMethodNotFound, "This client cannot be asked that"));
      }
      ask(std::move(question), found->second);
    };
    out.on_withdrawn = [this](std::uint64_t question) { callbacks_.withdraw(question); };
  }
  out.on_notification = [this, told = std::move(options.on_notification)](
                            std::string_view method, const json::object& params) {
    // A listener may end its listening.
    for (const auto& [id, listener] : std::map(core_->listeners)) listener(method, params);
    if (told) tell(told, method, params);
  };
  if (options.on_renewed) {
    out.on_renewed = [this, told = std::move(options.on_renewed)] { callbacks_.run(told, 0); };
  }
  return out;
}

void ClientConnection::tell(const Listener& told, std::string_view method,
                            const json::object& params) {
  json::value kept(json::object(params, json::storage_ptr()));
  const std::size_t bytes = method.size() + size_of(kept).memory();
  const bool has_dropped = callbacks_.run_within(
      {.jobs = ClientOptions::kMaxNotifications, .bytes = ClientOptions::kMaxNotificationBytes},
      [told, method = std::string(method), kept = std::move(kept)] {
        told(method, kept.get_object());
      },
      bytes);
  if (!has_dropped) return;
  if (const auto left_out = core_->dropped.take()) {
    log_warning("a notification of a server was dropped: too many wait", {{"left_out", *left_out}});
  }
}

std::uint64_t ClientConnection::listen(Listener listener) {
  const std::uint64_t id = ++last_listening_;
  core_->loop().post([core = core_, id, listener = std::move(listener)]() mutable {
    core->listeners.emplace(id, std::move(listener));
  });
  return id;
}

void ClientConnection::unlisten(std::uint64_t listening) {
  if (core_->background->is_of_parent()) return;
  core_->background->loop().post([core = core_, listening] { core->listeners.erase(listening); });
}

TimePoint ClientConnection::asked_until() const {
  return core_->questions > 0 ? SteadyClock().now()
                              : TimePoint(Duration(core_->asked_until.load()));
}

void ClientConnection::ask(ServerQuestion question, const ClientAnswer& answer) {
  ++core_->questions;
  // Goes with the question, whether it is answered or withdrawn.
  std::shared_ptr<void> open(nullptr, [core = core_](std::nullptr_t) {
    core->asked_until = SteadyClock().now().time_since_epoch().count();
    --core->questions;
  });
  auto reply =
      std::make_shared<UniqueFunction<void(Result<json::object>)>>(std::move(question.answer));
  callbacks_.run(
      [answer, params = std::move(question.params), reply = std::move(reply), stop = stop_,
       core = core_, open = std::move(open)]() mutable {
        std::stop_source over = CallbackThread::current();
        const std::stop_callback stopped(stop, [&over] { over.request_stop(); });
        Result<json::object> said = answer_of(answer, params, core->failures);
        if (over.stop_requested()) return;
        core->background->loop().post([reply = std::move(reply), said = std::move(said)]() mutable {
          (*reply)(std::move(said));
        });
      },
      question.number);
}

EventLoop& ClientConnection::Core::loop() const {
  if (background->is_of_parent()) {
    throw Error{kLostConnection,
                "The connection belongs to the process that this one was forked off from",
                {}};
  }
  return background->loop();
}

std::shared_ptr<ClientConnection> ClientConnection::make() {
  return {new ClientConnection(), [](const ClientConnection* connection) {
            if (!connection->core_->background->is_of_parent()) delete connection;
          }};
}

ClientConnection::ClientConnection() : core_(std::make_shared<Core>()) {
  core_->background = BackgroundLoop::shared();
}

Result<std::shared_ptr<ClientConnection>> ClientConnection::open(const MakeLink& make_link,
                                                                 ClientOptions options,
                                                                 bool expects_legacy,
                                                                 std::shared_ptr<void> server) {
  const std::shared_ptr<ClientConnection> connection = make();
  connection->idle_timeout_ = options.idle_timeout;
  connection->stop_ = options.stop;
  connection->kept_ = std::move(server);
  EventLoop& loop = connection->core_->background->loop();
  if (loop.on_loop_thread()) {
    throw std::logic_error("a callback of a client must not wait for another client");
  }
  const auto cancelled = [] { return fail(kCancelled, "Connecting was cancelled"); };
  if (connection->stop_.stop_requested()) return cancelled();
  const auto attempt = std::make_shared<Attempt>();
  loop.post([&connection, attempt, &make_link, &options, &loop, expects_legacy] {
    Result<std::unique_ptr<ServerLink>> link = make_link(loop);
    if (!link) return attempt->end(std::unexpected(std::move(link.error())));
    ClientSessionOptions made = connection->session_options(std::move(options));
    made.expects_legacy = expects_legacy;
    const auto session = std::make_shared<ClientSession>(loop, std::move(*link), std::move(made));
    connection->core_->session = session;
    session->connect(
        [attempt](Result<ServerDescription> description) { attempt->end(std::move(description)); });
  });
  const std::stop_callback stop(connection->stop_, [&loop, &attempt, &cancelled] {
    loop.post([attempt, cancelled] { attempt->end(cancelled()); });
  });
  Result<ServerDescription> description = attempt->outcome.get_future().get();
  if (!description) return std::unexpected(std::move(description.error()));
  connection->server_ = std::move(*description);
  return connection;
}

ClientConnection::~ClientConnection() {
  callbacks_.stop();
  EventLoop& loop = core_->background->loop();
  if (loop.on_loop_thread()) {
    close(core_, {});
    return;
  }
  std::promise<void> closed;
  loop.post([this, &closed] { close(core_, [&closed] { closed.set_value(); }); });
  closed.get_future().wait();
}

void ClientConnection::close(const std::shared_ptr<Core>& core, std::function<void()> done) {
  auto sessions = std::exchange(core->taken_up, {});
  if (core->session != nullptr) sessions.insert(std::exchange(core->session, {}));
  if (sessions.empty()) return done ? done() : void();
  const auto left = std::make_shared<std::size_t>(sessions.size());
  for (const auto& session : sessions) {
    close_session(core, session, [left, done] {
      if (--*left == 0 && done) done();
    });
  }
}

void ClientConnection::close_session(const std::shared_ptr<Core>& core,
                                     std::shared_ptr<ClientSession> session,
                                     std::function<void()> done) {
  // Nothing uses the session any more but this, which keeps it until its link has ended.
  ClientSession& closing = *session;
  closing.close([core, session = std::move(session), done = std::move(done)]() mutable {
    core->background->loop().post(
        [core, session = std::move(session), done = std::move(done)]() mutable {
          session.reset();
          if (done) done();
        });
  });
}

void ClientConnection::close_taken_up(const std::shared_ptr<Core>& core,
                                      const std::shared_ptr<ClientSession>& session) {
  if (core->taken_up.erase(session) > 0) close_session(core, session, {});
}

std::shared_ptr<ClientCall::State> ClientConnection::run(Begin begin, const CallOptions& options,
                                                         bool counts) {
  /// Of a request, until it has ended. Its members are used on the loop alone.
  struct Ticket {
    Ticket(std::shared_ptr<Core> of, bool is_counted) : core(std::move(of)), counts(is_counted) {
      if (counts) ++core->under_way;
    }
    ~Ticket() {
      if (counts) --core->under_way;
    }
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;
    const std::shared_ptr<Core> core;
    const bool counts;
    void pause(bool is_paused) const {
      if (const auto begun = session.lock()) begun->pause(number, is_paused);
    }
    /// Nobody waits any more. `is_left`: but perhaps somebody takes it up.
    void end(bool is_left) {
      is_given_up = true;
      const auto begun = session.lock();
      if (begun == nullptr) return;
      is_left ? begun->leave(number) : begun->cancel(number);
      close_taken_up(core, begun);
    }
    /// What holds up the connection that the call has, alone or with others.
    CallHolds& holds() {
      const bool is_shared = core->session != nullptr && core->session->shares_connection();
      std::shared_ptr<CallHolds>& kept = is_shared ? core->holds : own_holds;
      if (kept == nullptr) {
        // Servers part with clients that do not read for long.
        kept = std::make_shared<CallHolds>(core->loop(), CallOptions::kLongestHold);
      }
      return *kept;
    }
    std::weak_ptr<ClientSession> session = {};  // once it is begun, until that is closed
    ClientSession::Number number = 0;
    bool is_given_up = false;
    std::shared_ptr<CallHolds> own_holds = {};
  };
  const auto ticket = std::make_shared<Ticket>(core_, counts);
  EventLoop& loop = core_->loop();
  const auto state = std::make_shared<ClientCall::State>(
      options.max_events,
      [core = core_] {
        if (core->loop().on_loop_thread()) {
          throw std::logic_error("a callback of a client must not wait for the client");
        }
      },
      [ticket](bool is_left) {
        if (ticket->core->background->is_of_parent()) return;
        ticket->core->background->loop().post([ticket, is_left] { ticket->end(is_left); });
      },
      options.event_params);
  if (options.holds_up) {
    // In the order of what is said here, as the session may not be touched on the user's thread.
    state->hold_up([ticket](Holding holding) {
      if (ticket->core->background->is_of_parent()) return;
      ticket->core->background->loop().post([ticket, holding] {
        if (holding == Holding::no) return ticket->holds().release(ticket.get());
        if (holding == Holding::over) return ticket->holds().end(ticket.get());
        ticket->holds().hold(ticket.get(), [weak = std::weak_ptr(ticket)](bool is_held) {
          if (const auto held = weak.lock()) held->pause(is_held);
        });
      });
    });
  }
  // Before it begins, so that what was stopped already is not sent at all.
  state->cancel_on({options.stop, stop_});
  const auto least = parse_logging_level(options.log_level);
  loop.post([core = core_, ticket, state, least, wants_parts = options.partial_results,
             is_resumable = options.resumable, begin = std::move(begin)]() mutable {
    if (ticket->is_given_up || !core->session) return;
    RequestCallbacks callbacks{
        .on_progress = [state](const json::object& said) { state->add(said); },
        .on_reissued = [state] { state->restart(); },
        .on_answer = [state](Result<json::object> answer) { state->end(std::move(answer)); }};
    if (is_resumable) {
      callbacks.on_position = [state](std::string position) { state->mark(std::move(position)); };
    }
    if (least) {
      callbacks.on_log = [state, least = *least](const json::object& said) {
        const auto level = parse_logging_level(text_at(said, "level"));
        if (!level || *level >= least) {
          state->add(said, ClientCall::State::Said::log);
        }
      };
    }
    if (wants_parts) {
      callbacks.on_partial_result = [state](const json::object& said, std::uint64_t missing) {
        state->add(said, ClientCall::State::Said::partial_result, missing);
      };
    }
    Begun begun = begin(core->session, std::move(callbacks));
    ticket->session = begun.session;
    ticket->number = begun.number;
  });
  return state;
}

std::shared_ptr<ClientCall::State> ClientConnection::begin(std::string_view method,
                                                           json::object params, CallOptions options,
                                                           bool may_become_task) {
  options.partial_results = options.partial_results && method == "tools/call";
  const bool asks_for_logs = !options.log_level.empty() && server_.revision->era == Era::modern;
  if (!options.meta.empty() || asks_for_logs) {
    json::value& meta = params["_meta"];
    if (!meta.is_object()) meta.emplace_object();
    if (asks_for_logs) meta.get_object()["io.modelcontextprotocol/logLevel"] = options.log_level;
    for (const auto& [key, value] : options.meta) meta.get_object()[key] = value;
  }
  return run(
      [method = std::string(method), params = std::move(params),
       request = RequestOptions{.idle_timeout = options.idle_timeout.value_or(idle_timeout_),
                                .timeout = options.timeout,
                                .may_become_task = may_become_task}](
          const std::shared_ptr<ClientSession>& session, RequestCallbacks callbacks) mutable {
        return Begun{session, session->begin(std::move(method), std::move(params), request,
                                             std::move(callbacks))};
      },
      options);
}

std::shared_ptr<ClientCall::State> ClientConnection::follow_task(std::string id,
                                                                 const CallOptions& options) {
  return run(
      [id = std::move(id),
       request = RequestOptions{.idle_timeout = options.idle_timeout.value_or(idle_timeout_),
                                .timeout = options.timeout}](
          const std::shared_ptr<ClientSession>& session, RequestCallbacks callbacks) mutable {
        return Begun{session, session->follow_task(std::move(id), request, std::move(callbacks))};
      },
      options);
}

std::shared_ptr<ClientCall::State> ClientConnection::take_up(std::string_view resumption,
                                                             const CallOptions& options) {
  return run(
      [core = core_, from = parse_stream_position(resumption),
       request = RequestOptions{.idle_timeout = options.idle_timeout.value_or(idle_timeout_),
                                .timeout = options.timeout}](
          const std::shared_ptr<ClientSession>& session, RequestCallbacks callbacks) mutable {
        const auto told = callbacks.on_answer;
        const auto own = std::make_shared<std::weak_ptr<ClientSession>>();
        callbacks.on_answer = [core, own, told](Result<json::object> answer) {
          close_taken_up(core, own->lock());
          told(std::move(answer));
        };
        const auto taken_up =
            from ? session->take_up(*from, request, std::move(callbacks)) : nullptr;
        if (taken_up != nullptr) {
          *own = taken_up;
          core->taken_up.insert(taken_up);
        } else {
          told(fail(kLostConnection, "The call cannot be taken up over this connection"));
        }
        return Begun{taken_up, ClientSession::kTakenUp};
      },
      options);
}

std::shared_ptr<ClientCall::State> ClientConnection::watch(WatchOptions options) {
  return run(
      [filter = WatchFilter{.tools = options.tools,
                            .prompts = options.prompts,
                            .resources = options.resources,
                            .uris = std::move(options.uris),
                            .level = std::move(options.log_level)}](
          const std::shared_ptr<ClientSession>& session, RequestCallbacks callbacks) mutable {
        return Begun{session, session->watch(std::move(filter), std::move(callbacks))};
      },
      {.stop = options.stop, .max_events = options.max_waiting}, false);
}

void ClientConnection::notify(std::string_view method, json::object params) {
  core_->loop().post(
      [core = core_, method = std::string(method), params = std::move(params)]() mutable {
        if (!core->session) return;
        const Result<void> sent = core->session->notify(method, std::move(params));
        if (!sent) log_debug("a notification could not be sent", {{"why", sent.error().message}});
      });
}

}  // namespace sluice::detail

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>

#include "client/api/background_loop.hpp"
#include "client/api/callback_thread.hpp"
#include "client/api/calls/call_holds.hpp"
#include "client/api/calls/call_state.hpp"
#include "client/session/client_session.hpp"
#include "core/log/log_limit.hpp"
#include "core/unique_function.hpp"
#include "sluice/client.hpp"

namespace sluice::detail {

/// What the handles of one connection share. Thread-safe. Destroying it ends the connection in its
/// orderly way and waits for that, except on the client's own loop.
class ClientConnection final {
 public:
  using MakeLink = std::function<Result<std::unique_ptr<ServerLink>>(EventLoop& loop)>;

  /// Connects and waits for it. `make_link` is called on the loop. `expects_legacy`: see
  /// ClientSessionOptions. `server` is kept until the connection is over. Throws std::logic_error
  /// on the client's own loop.
  static Result<std::shared_ptr<ClientConnection>> open(const MakeLink& make_link,
                                                        ClientOptions options,
                                                        bool expects_legacy = false,
                                                        std::shared_ptr<void> server = {});
  ~ClientConnection();
  ClientConnection(const ClientConnection&) = delete;
  ClientConnection& operator=(const ClientConnection&) = delete;

  /// Set once it is open.
  [[nodiscard]] const ServerDescription& server() const { return server_; }
  /// Of requests whose options have none; 0: no limit.
  [[nodiscard]] Duration idle_timeout() const { return idle_timeout_; }
  /// `may_become_task`: see RequestOptions.
  [[nodiscard]] std::shared_ptr<ClientCall::State> begin(std::string_view method,
                                                         json::object params, CallOptions options,
                                                         bool may_become_task = false);
  [[nodiscard]] std::shared_ptr<ClientCall::State> follow_task(std::string id,
                                                               const CallOptions& options);
  /// Goes on with a call whose CallEvent::resumption this is.
  [[nodiscard]] std::shared_ptr<ClientCall::State> take_up(std::string_view resumption,
                                                           const CallOptions& options);
  [[nodiscard]] std::shared_ptr<ClientCall::State> watch(WatchOptions options);
  void notify(std::string_view method, json::object params);
  /// How many requests and tasks somebody waits for; watches are not counted.
  [[nodiscard]] std::size_t under_way() const { return core_->under_way; }

  /// Until when the server has waited for an answer of the user: now, if it does; the beginning of
  /// time, if it never has. By SteadyClock.
  [[nodiscard]] TimePoint asked_until() const;

  /// Hears of notifications that belong to no call, beside ClientOptions::on_notification. On the
  /// loop, which it must not hold up, until unlisten(). Returns what to end it with.
  using Listener = std::function<void(std::string_view method, const json::object& params)>;
  [[nodiscard]] std::uint64_t listen(Listener listener);
  void unlisten(std::uint64_t listening);

 private:
  ClientConnection();
  /// It is neither closed nor destroyed in a process that was forked off, because it goes on in the
  /// parent.
  static std::shared_ptr<ClientConnection> make();

  /// What tasks on the loop use.
  struct Core {
    std::shared_ptr<BackgroundLoop> background;
    /// Throws Error if the loop runs in the parent of this process.
    [[nodiscard]] EventLoop& loop() const;
    // Used on the loop alone:
    std::shared_ptr<ClientSession> session = {};             // null once it is closed
    std::set<std::shared_ptr<ClientSession>> taken_up = {};  // beside it, for a call each
    std::map<std::uint64_t, Listener> listeners = {};
    std::shared_ptr<CallHolds> holds = {};  // of calls that share the connection; made when needed
    LogLimit dropped;                       // notifications
    LogLimit failures;                      // of the user's functions
    std::atomic<std::size_t> under_way = 0;
    std::atomic<std::size_t> questions = 0;    // that the user has not answered
    std::atomic<Duration::rep> asked_until{};  // of the last one that is over
  };

  struct Begun {
    std::shared_ptr<ClientSession> session;
    ClientSession::Number number;
  };
  /// Begins something of the session, or of one beside it, as a request of the caller. `counts`:
  /// see under_way().
  using Begin = UniqueFunction<Begun(const std::shared_ptr<ClientSession>&, RequestCallbacks)>;
  std::shared_ptr<ClientCall::State> run(Begin begin, const CallOptions& options,
                                         bool counts = true);

  [[nodiscard]] ClientSessionOptions session_options(ClientOptions options);
  /// Tells the user's function on its thread.
  void tell(const Listener& told, std::string_view method, const json::object& params);
  /// Asks the user's function on its thread, and gives the answer back on the loop, unless nobody
  /// waits for it: question_stop().
  void ask(ServerQuestion question, const ClientAnswer& answer);
  static void close(const std::shared_ptr<Core>& core, std::function<void()> done);
  static void close_session(const std::shared_ptr<Core>& core,
                            std::shared_ptr<ClientSession> session, std::function<void()> done);
  /// The same of a session that was begun for one call alone; others are left as they are.
  static void close_taken_up(const std::shared_ptr<Core>& core,
                             const std::shared_ptr<ClientSession>& session);

  std::shared_ptr<void> kept_;
  std::shared_ptr<Core> core_;
  ServerDescription server_;
  Duration idle_timeout_{};
  std::stop_token stop_;  // of all requests
  CallbackThread callbacks_;
  std::atomic<std::uint64_t> last_listening_ = 0;
};

}  // namespace sluice::detail

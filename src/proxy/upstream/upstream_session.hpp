#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/container/flat_map.hpp>

#include "client/session/client_session.hpp"
#include "core/executor.hpp"
#include "core/sharing/client_memory.hpp"
#include "protocol/logging_level.hpp"
#include "proxy/upstream/change_feed.hpp"
#include "proxy/upstream/client_identity.hpp"
#include "proxy/upstream/feed_owner.hpp"
#include "proxy/upstream/level_teller.hpp"
#include "proxy/upstream/session_check.hpp"
#include "proxy/upstream/upstream.hpp"
#include "server/sessions/change.hpp"
#include "stream/client_quota.hpp"

namespace sluice {

/// A client's request that a server has not answered yet.
class UpstreamCall {
 public:
  virtual ~UpstreamCall() = default;
  virtual void on_progress(const json::object& params) = 0;
  virtual void on_notification(std::string_view method, const json::object& params) = 0;
  /// Whether the client hears this notification in the course of this call.
  [[nodiscard]] virtual bool hears(std::string_view method, const json::object& params) const = 0;
  /// Whether the client can be asked something in the course of this call.
  [[nodiscard]] virtual bool can_ask() const = 0;
  virtual void on_question(ServerQuestion question) = 0;
  /// The server's task that it waits for; empty if it waits for none.
  [[nodiscard]] virtual std::string_view task() const { return {}; }
  /// Whether the server may have made a task of it, whose id is not known yet.
  [[nodiscard]] virtual bool may_become_task() const { return false; }
  /// Nobody waits for the answer to this question any more, if it was asked of this call.
  virtual void on_withdrawn(std::uint64_t question) = 0;
  /// Called once, last.
  virtual void on_answer(Result<json::object> answer) = 0;
  /// In place of it, for most results, which are valid only during the call.
  virtual void on_result(const json::object& result) {
    on_answer(json::object(result, json::storage_ptr()));
  }
};

/// What a server says that belongs to no request. It must not destroy the session.
class UpstreamListener {
 public:
  virtual ~UpstreamListener() = default;
  virtual void on_change(const Change& change) = 0;
  virtual void on_notification(std::string_view method, const json::object& params) = 0;
  /// Asks the client outside of all calls. Returns false if that is not possible now.
  virtual bool on_question(ServerQuestion& question) = 0;
  /// As of an UpstreamCall.
  virtual void on_withdrawn(std::uint64_t question) = 0;
  /// From now on the server tells of the changes that it was asked for. `missed`: what may have
  /// changed before, as the client has made requests since then.
  virtual void on_listening(const ChangeFeed::Unheard& missed) = 0;
  /// There is a new session with the server, which knows nothing of the one before.
  virtual void on_renewed() = 0;
  /// Another server answers at this address, and understands nothing of the session. Retire it, and
  /// make further requests in another.
  virtual void on_replaced() = 0;
};

/// One client's session with one server behind the proxy. It is opened when it is needed, and again
/// after it was lost. A server that is silent for too long while it has something to answer is
/// asked whether it still lives; if it does not say so either, it is given up, and a child process
/// ends with that. Except for when_open(), callbacks never run within a call to this. Belongs to
/// its loop; owned by shared pointers.
class UpstreamSession final : public std::enable_shared_from_this<UpstreamSession>,
                              private FeedOwner {
 public:
  /// `listener` outlives this. `is_shared`: several clients use it.
  UpstreamSession(Executor& loop, std::shared_ptr<Upstream> upstream, ClientIdentity client,
                  UpstreamListener& listener, bool is_shared = false);
  /// Takes the place of `replaced`, for the same client, which is told when the session is open.
  UpstreamSession(UpstreamListener& listener, const UpstreamSession& replaced);
  /// Ends the session in its orderly way.
  ~UpstreamSession() override;
  UpstreamSession(const UpstreamSession&) = delete;
  UpstreamSession& operator=(const UpstreamSession&) = delete;

  [[nodiscard]] Upstream& upstream() const { return *upstream_; }
  /// Whom this is for. `programs` limits how many programs run for a principal, of which this may
  /// start one; `memory` is charged with what the server asks outside of calls. Before the first
  /// call nothing limits them.
  struct Payer {
    std::shared_ptr<ClientQuota> programs;
    std::string principal;
    std::shared_ptr<MemoryShare> memory;
  };
  void charge_to(Payer payer) { payer_ = std::move(payer); }
  /// Opens the session if it is not open. `then` is called once, later. Errors: why it cannot be
  /// opened, as an answer to the client.
  using Opened = std::function<void(const Result<void>&)>;
  void when_open(Opened then);
  [[nodiscard]] bool is_open() const { return session_ != nullptr && opening_.empty(); }
  /// Of the last time that it was open.
  [[nodiscard]] const ServerDescription& server() const { return server_; }
  /// Whether the server may keep something for this client beyond its requests.
  [[nodiscard]] bool has_state() const { return has_state_; }

  /// Sends a request; only while the session is open. Returns a number that identifies the request.
  /// `may_become_task` and `memory`: as in RequestOptions.
  std::uint64_t begin(const std::string& method, json::object params,
                      std::shared_ptr<UpstreamCall> call, bool may_become_task = false,
                      std::shared_ptr<void> memory = nullptr);
  /// As ClientSession::shares_connection(); only while the session is open.
  [[nodiscard]] bool shares_connection() const { return session_->shares_connection(); }
  /// Waits for the end of the server's task `id` in the same way. Only while the session is open.
  std::uint64_t follow(const std::string& id, std::shared_ptr<UpstreamCall> call);
  /// As ClientSession::pause(). The server's silence does not count meanwhile. A request that holds
  /// up others on the same connection is given up after kLongestPause.
  void pause(std::uint64_t number, bool is_paused);
  /// Nobody waits for the answer any more. Tells the server.
  void cancel(std::uint64_t number);
  /// Ends a task of the server, if the session is open.
  void cancel_task(std::string_view id);
  /// `memory` is kept as long as the server has not taken the message.
  void notify(std::string_view method, const json::object& params, std::shared_ptr<void> memory);
  /// Only for legacy servers; kept for sessions that follow. Requests that are begun later are sent
  /// when the server has answered.
  void set_level(LoggingLevel level);
  /// What was set last.
  [[nodiscard]] std::optional<LoggingLevel> level() const { return level_.wanted(); }
  /// What changes the client wants to hear of. If it `listens`, the session is opened for that. As
  /// long as it does, or wants to hear of resources, a session that was lost is opened again after
  /// a while, and a legacy server is asked every now and then whether it has forgotten it.
  void want(bool lists, Uris uris, bool listens);
  [[nodiscard]] ChangeFeed& feed() { return feed_; }
  /// Asks a question in the course of the call that it belongs to, or of the newest, or outside of
  /// all calls, or later. A call that ends hands back in this way what may belong to another.
  void offer(ServerQuestion question);
  /// The same, but returns false if no call can ask it now. `may_wait`: for the answer that names
  /// its task.
  bool offer_to_call(ServerQuestion& question, bool may_wait = true);
  /// Refuses the questions that nobody has been asked. For the end of a lease.
  void refuse_questions();
  [[nodiscard]] bool is_idle() const { return requests_.empty(); }

  static constexpr Duration kLongestPause = std::chrono::seconds(30);

  /// Nothing but the answers of the requests under way is wanted any more. If the server is silent
  /// for too long, they fail. The session ends when nobody owns this.
  void retire();
  /// Drops everything and ends the session. Nothing else may be called afterwards.
  void close();

 private:
  struct Request {
    ClientSession::Number number = 0;  // 0: it is held
    std::shared_ptr<UpstreamCall> call;
    bool is_paused = false;
    TimePoint paused_at = {};
  };
  struct Waiting {
    ServerQuestion question;
    TimePoint since;
  };
  struct Held {
    std::uint64_t number;
    std::string method;
    json::object params;
    bool may_become_task;
    LevelTeller::Round level;  // that it waits for
    std::shared_ptr<void> memory;
  };

  /// Numbers the sessions that were begun, also in those that this takes the place of. So nothing
  /// is heard of one that is over, and the questions of all have numbers of their own.
  using SessionNumber = std::uint64_t;
  static std::uint64_t own_number(SessionNumber session, std::uint64_t question) {
    constexpr unsigned kBits = 40;  // of the questions of one session
    return session << kBits | question;
  }
  [[nodiscard]] bool is_current(SessionNumber number) const {
    return session_ != nullptr && number == session_number_;
  }
  [[nodiscard]] ClientSessionOptions session_options();
  void connect();
  Result<void> take_program();
  /// Ends a session that nobody uses any more, and keeps it and its program's place until its link
  /// has ended.
  void end_session(std::shared_ptr<ClientSession> session);
  void on_connected(const Result<ServerDescription>& server);
  void on_lost(const Error& why);
  /// Opens the session because its client wants to hear of changes, or asks a legacy server whether
  /// it knows it.
  void check();
  void on_listening();
  /// Asks whether the server lives. `then` is told the answer, unless the session is over by then.
  void ask_for_life(std::function<void(const Result<json::object>&)> then);

  // Replaced servers: upstream_session_replaced.cpp
  /// A request is refused so. A server of another era than the session's may do that: asks it in
  /// the session.
  void doubt_era(const Error& why);
  /// The server refuses that, too: tries a session of the other era.
  void look_for_another();
  void on_another(const Result<ServerDescription>& server);

  // FeedOwner
  void on_refused(const Error& why) override { doubt_era(why); }
  void on_asked() override { has_asked_ = !requests_.empty(); }
  void on_subscribed(const std::string& uri) override {
    listener_->on_change({.kind = Change::Kind::resource, .subject = uri});
  }
  void opened(const Result<void>& outcome);
  /// Whether the server has log levels.
  [[nodiscard]] bool has_levels() const;
  std::function<void()> tell_level(LoggingLevel level, bool renews, LevelTeller::Told told);
  /// A new session's server hears of the level before what is sent again.
  void repeat_later(std::function<void()> go_on);
  std::uint64_t add(std::shared_ptr<UpstreamCall> call);
  void send(Held request);
  void send_held();
  /// Callbacks that end with the session, and so with this.
  RequestCallbacks callbacks_of(std::uint64_t number);
  /// A request that is answered; null if nobody waits for it any more.
  std::shared_ptr<UpstreamCall> take(std::uint64_t number);

  void on_answer(std::uint64_t number, Result<json::object> answer);
  /// What a server says of a request; null if nobody waits for it any more.
  std::shared_ptr<UpstreamCall> heard_of(std::uint64_t number);
  void on_notification(std::string_view method, const json::object& params);
  void offer_waiting();
  /// Lets calls ask what waits, in a later turn.
  void offer_waiting_later();
  /// No question waits for ever for the answer that names its task.
  void limit_patience(TimePoint since);
  /// Asks outside of all calls, or later.
  void ask_or_keep(ServerQuestion question, TimePoint since);
  void on_withdrawn(std::uint64_t question);
  /// The newest call of which `is_right` holds; null if there is none.
  [[nodiscard]] std::shared_ptr<UpstreamCall> newest_call(
      const std::function<bool(const UpstreamCall&)>& is_right) const;
  /// The call that waits for the task that a message belongs to; null if there is none.
  [[nodiscard]] std::shared_ptr<UpstreamCall> call_of_task(const json::object& params) const;
  [[nodiscard]] bool is_of_nobody(const json::object& params) const;
  /// Whether it belongs to a task that a call may have become whose answer is still on its way.
  [[nodiscard]] bool may_be_of_new_task(const json::object& params) const;
  /// Whether it belongs to a task that no call is, and that none may have become.
  [[nodiscard]] bool names_unknown_task(const json::object& params) const;

  /// Gives up what is paused for too long.
  void end_long_pauses();
  /// Whether somebody else waits for what the server says.
  [[nodiscard]] bool do_others_wait() const;
  void heard();
  void watch();
  void on_silence();

  Executor* loop_;
  std::shared_ptr<Upstream> upstream_;
  ClientIdentity client_;
  UpstreamListener* listener_;
  Payer payer_;
  std::shared_ptr<void> program_;           // its place in the quota, while it runs
  std::shared_ptr<ClientSession> session_;  // null: it is closed
  SessionNumber session_number_ = 0;        // of the last one
  std::shared_ptr<ClientSession> trial_;    // of a session of the other era; null: none
  bool is_retired_ = false;
  bool is_successor_ = false;  // it takes the place of another, and was not open yet
  bool waits_ = false;         // its client waits for changes
  std::vector<Opened> opening_;
  ServerDescription server_;
  bool has_state_ = false;
  // Numbers grow, so the newest goes to the end, and nothing is allocated for it.
  boost::container::flat_map<std::uint64_t, Request> requests_;
  std::uint64_t last_number_ = 0;
  bool has_asked_ = false;          // anything since the server was asked for changes
  std::vector<Waiting> waiting_;    // that could not be asked yet
  Executor::TimerId patience_ = 0;  // of those that wait for an answer that names their task
  LevelTeller level_;
  std::vector<std::function<void()>> repeating_;  // what waits for it in a new session
  std::vector<Held> held_;                        // requests that wait for that
  bool is_shared_;
  ChangeFeed feed_;
  SessionCheck check_;
  bool is_era_asked_ = false;  // in the session
  TimePoint next_doubt_ = TimePoint::min();
  bool was_hinted_ = false;    // what is being opened: that the server is of the legacy era
  bool was_left_out_ = false;  // the server, as no session could be opened
  bool is_needed_ = true;      // what is being opened, by a request
  TimePoint heard_{};          // the server, last
  Executor::TimerId timer_ = 0;
  Executor::TimerId pause_timer_ = 0;
  bool is_probing_ = false;
};

}  // namespace sluice

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/session/contract/client_session_options.hpp"
#include "client/session/contract/server_link.hpp"
#include "client/session/handshake/handshake.hpp"
#include "client/session/handshake/message_writer.hpp"
#include "client/session/memory/listed_tools.hpp"
#include "client/session/memory/result_cache.hpp"
#include "client/session/questions/questions.hpp"
#include "client/session/questions/server_requests.hpp"
#include "client/session/requests/open_requests.hpp"
#include "client/session/requests/request.hpp"
#include "client/session/session_activities.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/executor.hpp"
#include "core/log/log_limit.hpp"
#include "json/json.hpp"
#include "protocol/revision.hpp"
#include "rpc/message.hpp"

namespace sluice {

struct WatchFilter;

/// A client's conversation with one server, in whichever era that speaks: requests and their
/// answers in any number of rounds, progress, cancellation, questions of the server. It is a state
/// machine over a ServerLink. Callbacks run on the loop, never from within a call to the session,
/// and may destroy it. Belongs to its loop; owned by shared pointers.
class ClientSession final : public std::enable_shared_from_this<ClientSession>,
                            private ServerLink::Owner,
                            private Handshake::Session {
 public:
  using Options = ClientSessionOptions;

  /// Messages in one batch. A longer one is not taken, for a short text can have very many.
  static constexpr std::size_t kMaxBatch = 100'000;

  /// `tools` are what is known of the server's already; sessions of one loop may share them.
  ClientSession(Executor& loop, std::unique_ptr<ServerLink> link, Options options,
                std::shared_ptr<ListedTools> tools = std::make_shared<ListedTools>());
  ~ClientSession() override;
  ClientSession(const ClientSession&) = delete;
  ClientSession& operator=(const ClientSession&) = delete;

  /// Opens the link and finds out what the server speaks. Call once, first. Errors: -32022 if there
  /// is no revision that both know, the server's error to `initialize`, or why the link has failed.
  void connect(std::function<void(Result<ServerDescription>)> done);
  /// Set once connect() is done.
  [[nodiscard]] const ServerDescription& server() const { return server_; }

  /// Identifies a request. Never 0.
  using Number = std::uint64_t;
  /// Sends a request; call after connect() is done. The session adds what `_meta` must have, and
  /// its own progress token.
  Number begin(std::string method, json::object params, const RequestOptions& options,
               RequestCallbacks callbacks);
  /// A session beside this one, with the same options, that goes on with a request of a former
  /// session: its answer is read from that position on. It has no other requests, and ends no
  /// session. `callbacks` are told later. Null: the link cannot do that.
  [[nodiscard]] std::shared_ptr<ClientSession> take_up(const StreamPosition& from,
                                                       const RequestOptions& options,
                                                       RequestCallbacks callbacks);
  /// Of the request that take_up() has begun.
  static constexpr Number kTakenUp = 1;
  /// Drops the request without an answer, and without telling the server, if a position of it was
  /// told where somebody else can take it up; see take_up(). If not, cancels it.
  void leave(Number number);
  /// Waits for the end of a task, whoever has begun it; see TaskFollower. Its answer is the task's.
  /// Without an answer to a question for its state for `idle_timeout`, it asks again, a few times.
  /// Dropping it leaves the task alone.
  Number follow_task(std::string id, const RequestOptions& options, RequestCallbacks callbacks);
  /// Hears of changes until it is cancelled; see ChangeWatch.
  Number watch(WatchFilter filter, RequestCallbacks callbacks);
  /// Stops or goes on reading what the server sends about a request, until it is over; see
  /// ServerLink::pause(). The silence of a server that is not read counts for no timeout. Returns
  /// false for tasks and watches, which cannot be paused, and for what is over.
  bool pause(Number number, bool is_paused);
  /// If the server forgets the session, no other is begun: its requests fail with kNotFound.
  void renew_no_more() { renews_ = false; }
  /// Drops the request without an answer, and tells the server. Does nothing if it is answered.
  void cancel(Number number);
  Result<void> notify(std::string_view method, json::object params) override {
    return notify(method, std::move(params), nullptr);
  }
  /// `memory` is kept as long as the message waits or is under way.
  Result<void> notify(std::string_view method, json::object params, std::shared_ptr<void> memory);
  /// Drops all requests without answers, and ends the link as ServerLink::close() does. No other
  /// function may be called afterwards; the session may be destroyed once `done` is called.
  void close(std::function<void()> done);

  /// As ServerLink::shares_connection().
  [[nodiscard]] bool shares_connection() const { return link_->shares_connection(); }
  [[nodiscard]] std::size_t unanswered() const { return requests_.size() + activities_.size(); }

  // For its activities.

  void forget(Number activity) { activities_.take(activity); }
  /// The id that the server knows a request by now; 0 if there is none.
  [[nodiscard]] std::int64_t id_of(Number number) const {
    const OpenRequest* const request = requests_.find(number);
    return request == nullptr ? 0 : request->id;
  }
  [[nodiscard]] const SessionActivities& activities() const { return activities_; }
  /// Drops the results that such a notification of the server would make stale.
  void distrust(std::string_view notification, const json::object& params) {
    cache_.on_notification(notification, params);
  }

 private:
  // ServerLink::Owner
  void on_connected(const RequestId& id) override;
  void on_message(std::string_view text) override { take(text, nullptr); }
  bool on_reply(const RequestId& id, std::string_view text) override { return take(text, &id); }
  void on_unreadable(std::string_view text, const Error& why) override;
  void on_unanswered(const RequestId& id, const Error& why) override;
  void on_broken_off(const RequestId& id, const Error& why) override;
  void on_session_over(const RequestId& id) override { to_new_session(id, true); }
  void on_old_session_over(const RequestId& id) override { to_new_session(id, false); }
  void on_session_doubted() override;
  void on_listening() override;
  void on_position(const RequestId& id, std::string_view session,
                   std::string_view last_event) override;
  [[nodiscard]] bool awaits(const RequestId& id) const override;
  void on_lost(const Error& why) override;

  // Handshake::Session
  void open() override { link_->open(*this); }
  bool reopen() override { return link_->reopen(); }
  void speak(const Revision& revision) override { server_.revision = &revision; }
  void ask(std::string method, json::object params, Duration patience) override;
  void later(UniqueFunction<void()> task) override;

  /// Sends a request again, whose session is over; in another one if that is the current session.
  void to_new_session(const RequestId& id, bool is_current);
  /// Lets a request wait for a new session, for as long as the server may be silent.
  void hold(Number number, OpenRequest& request);
  /// Whether new requests can be sent: no session is being begun, and none was lost for good.
  [[nodiscard]] bool has_session() const { return !handshake_.is_running() && !has_no_session_; }
  /// Begins a new session in place of the one that is forgotten.
  void renew();
  /// A request of the session that is over waits for an answer of ours, which cannot arrive.
  void end_asked(Number number);
  void end_all_asked();
  /// Has what has waited for the new session sent, or says why there is none.
  void renewed(const Result<void>& outcome);
  /// Sends that.
  void repeat_held();

  void send_round(Number number, OpenRequest& request);
  /// The server does not have the request any more.
  void end_round(Number number, OpenRequest& request);
  /// Tells the link whether the round that the server has is paused.
  void pause_round(Number number, OpenRequest& request);
  /// The server has its idle timeout from now on, unless it is waiting for an answer of ours.
  void expect(Number number, OpenRequest& request);
  /// A question that belongs to a request, or to any if `only` is 0, was asked or is over.
  void on_turn(Number only);
  OpenRequest remove(Number number);
  /// Whoever is asked for input hears that nobody waits for it.
  void withdraw_inputs(OpenRequest& request);
  void remove_all();
  /// Sends a request again, in a while. Returns false if that may do something twice, and says so
  /// in `why` it is not answered.
  bool reissue(Number number, OpenRequest& request, Error& why);
  Number begin(std::shared_ptr<SessionActivity> activity);
  /// Why nothing can be begun now.
  [[nodiscard]] std::optional<Error> refusal() const;
  [[nodiscard]] bool is_cached(std::string_view method, const json::object& params) const;
  void give_up(Number number, const char* what);
  void unanswered(const RequestId& id, const Error& why);
  /// Why a request has no answer, with what the server has done wrong meanwhile.
  [[nodiscard]] Error explained(const OpenRequest& request, Error why) const;
  void end(Number number, Result<json::object> answer);
  /// Ends a request with a result that is valid only during the call.
  void end_with(Number number, const json::object& result);
  /// Answers a request in a later turn, because it was not sent.
  void end_later(Number number, Result<json::object> answer);
  void tell_cancelled(const OpenRequest& request, std::string_view reason);

  /// Takes a message or a batch, which came in the reply to `only` if that is not null. If it
  /// answers another request, returns false.
  bool take(std::string_view text, const RequestId* only);
  bool take_each(std::string_view text, const RequestId* only);
  bool take_one(std::string_view text, const RequestId* only);
  /// `number`: the request in the reply to which it came; 0 if there is none.
  /// Whether a message comes in the reply to a request that has been answered, so that it belongs
  /// to nobody. Legacy servers say there what concerns the whole session, too.
  [[nodiscard]] bool is_too_late(const Message& message, const RequestId* reply_to) const;
  void on_request(const Message& message, Number number);
  void on_response(const Message& message);
  void on_error(Number number, OpenRequest& request, Error error);
  /// The server needs answers before it goes on (2026-07-28, Multi Round-Trip Requests).
  void on_input_required(Number number, const json::object& result);
  void on_input(Number number, const std::string& key, Result<json::object> answer);
  void next_round(Number number, OpenRequest& request);
  /// `reply_to`: as for take().
  void on_notification(const Message& message, const RequestId* reply_to);
  void on_partial_result(const json::object& params);
  /// The request in whose reply a message came; 0 if there is none.
  [[nodiscard]] Number request_of(const RequestId* reply_to) const;
  void reply(std::string text);

  Executor* loop_;
  Options options_;
  ServerDescription server_;
  Handshake handshake_;
  TimePoint next_doubt_{};       // see on_session_doubted()
  std::optional<Error> lost_;    // why the link is over
  bool has_no_session_ = false;  // it could not be replaced
  bool is_preparing_ = false;    // the new one, before anything is sent again
  std::uint64_t sessions_ = 0;   // that were begun in place of a forgotten one
  std::uint64_t beside_ = 0;     // sessions that were begun beside this one
  bool renews_ = true;
  std::vector<Number> held_;  // requests that wait for a new session
  std::size_t paused_ = 0;    // requests that the link was told to pause
  RequestId late_probe_;      // that was given up
  Number last_number_ = 0;
  Questions questions_;
  ServerRequests server_requests_;
  OpenRequests requests_;
  SessionActivities activities_;
  std::shared_ptr<ListedTools> tools_;
  ResultCache cache_;
  MessageParser parser_;
  std::uint64_t faults_ = 0;  // messages of the server that could not be read
  std::string last_fault_;    // why not
  LogLimit logged_faults_;
  std::unique_ptr<ServerLink> link_;
  MessageWriter writer_;
};

}  // namespace sluice

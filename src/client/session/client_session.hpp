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

#include "client/session/server_link.hpp"
#include "client/session/tool_headers.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/executor.hpp"
#include "core/log/log_limit.hpp"
#include "core/unique_function.hpp"
#include "json/json.hpp"
#include "protocol/client_capabilities.hpp"
#include "protocol/revision.hpp"
#include "rpc/message.hpp"
#include "sluice/client_info.hpp"

namespace sluice {

/// Something that the server asks the client for: `method` with `params`, such as
/// elicitation/create.
struct ServerQuestion {
  std::uint64_t number = 0;   // of all questions of the session
  std::uint64_t request = 0;  // the ClientSession::Number that it belongs to; 0: not known
  std::string key = {};       // among `inputRequests` (2026-07-28, MRTR); empty: it has none
  std::string method;
  json::object params;
  /// Call once, now or later, on the session's loop. Does nothing if nobody waits any more.
  UniqueFunction<void(Result<json::object>)> answer;
};

struct ClientSessionOptions {
  ClientInfo info = {.name = "sluice", .version = "0"};
  json::object capabilities = {};  // a ClientCapabilities object
  /// The revision to speak. Empty: whatever the server speaks, which a probe finds out (2026-07-28,
  /// Versioning, Backward Compatibility).
  std::string revision = {};
  /// False: a server of a given modern revision is not asked what it speaks. Nothing is known about
  /// it then.
  bool asks_first = true;
  Duration probe_timeout = std::chrono::seconds(5);     // a server that is silent is a legacy one
  Duration connect_timeout = std::chrono::seconds(30);  // for `initialize`
  std::size_t max_requests = 1000;                      // unanswered
  std::size_t max_questions = 100;                      // unanswered
  int max_rounds = 10;                                  // of one request (MRTR)
  /// Is asked what the server asks. Empty: such a request is refused.
  std::function<void(ServerQuestion)> on_question = {};
  /// Is told the number of a question that nobody waits for any more.
  std::function<void(std::uint64_t question)> on_withdrawn = {};
  /// Is told of notifications that belong to no request, or to one without `on_notification`.
  std::function<void(std::string_view method, const json::object& params)> on_notification = {};
  /// Is told that the server had forgotten the session, and that there is a new one. What the
  /// server kept for the old one is lost: subscriptions, the log level, what calls stored.
  std::function<void()> on_renewed = {};
  /// Is told, once, that the link is over. All requests have failed before.
  std::function<void(const Error&)> on_lost = {};
};

struct RequestOptions {
  /// Without an answer or progress for so long, the request is given up and the server told. 0: no
  /// limit.
  Duration idle_timeout = std::chrono::seconds(60);
  Duration timeout = {};  // in total; 0: no limit
};

struct RequestCallbacks {
  /// The params of each notifications/progress.
  std::function<void(const json::object& params)> on_progress = {};
  /// Other notifications that came in the reply to the request, where requests have such.
  std::function<void(std::string_view method, const json::object& params)> on_notification = {};
  /// Called once: the result, the server's error, or why there is no answer. kTimedOut: too late.
  std::function<void(Result<json::object>)> on_answer = {};
};

/// What a session's server has said about itself.
struct ServerDescription {
  const Revision* revision = nullptr;  // that is spoken with it
  json::object about = {};             // the result of `initialize` or `server/discover`
};

/// A client's conversation with one server, in whichever era that speaks: requests and their
/// answers in any number of rounds, progress, cancellation, questions of the server. It is a state
/// machine over a ServerLink. Callbacks run on the loop, never from within a call to the session,
/// and may destroy it. Belongs to its loop; owned by shared pointers.
class ClientSession final : public std::enable_shared_from_this<ClientSession>,
                            private ServerLink::Owner {
 public:
  using Options = ClientSessionOptions;

  ClientSession(Executor& loop, std::unique_ptr<ServerLink> link, Options options);
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
  /// Drops the request without an answer, and tells the server. Does nothing if it is answered.
  void cancel(Number number);
  Result<void> notify(std::string_view method, json::object params);
  /// Drops all requests without answers, and ends the link as ServerLink::close() does. No other
  /// function may be called afterwards; the session may be destroyed once `done` is called.
  void close(std::function<void()> done);

  [[nodiscard]] std::size_t unanswered() const { return requests_.size(); }

 private:
  struct Request {
    std::string method;
    json::object params;  // of the first round
    RequestOptions options;
    RequestCallbacks callbacks;
    std::int64_t id = 0;         // of the current round; 0 while the client is asked for input
    int rounds = 0;              // that have ended
    bool was_held = false;       // for a new session
    bool was_refreshed = false;  // the tools have been listed again for it
    json::object inputs{};       // the answers of this round
    std::map<std::uint64_t, std::string> open_inputs{};  // its unanswered questions, and their keys
    std::uint64_t faults = 0;                            // of the server, before this request
    Executor::TimerId idle_timer = 0;
    Executor::TimerId timer = 0;
  };
  using Requests = std::map<Number, Request>;

  // ServerLink::Owner
  void on_message(std::string_view text) override { take(text, nullptr); }
  bool on_reply(const RequestId& id, std::string_view text) override { return take(text, &id); }
  void on_unreadable(std::string_view text, const Error& why) override;
  void on_unanswered(const RequestId& id, const Error& why) override;
  void on_session_over(const RequestId& id) override;
  [[nodiscard]] bool awaits(const RequestId& id) const override;
  void on_lost(const Error& why) override;

  void discover(const Revision& revision);
  void on_discovered(const Revision& asked, Result<json::object> answer);
  void initialize(const Revision& revision);
  void on_initialized(Result<json::object> answer);
  void connected(const Revision& revision, json::object about);
  void renew();
  void renewed(const Result<void>& outcome);
  void fail_to_connect(Error why);

  Result<void> send_round(Number number, Request& request, json::object params);
  Result<void> send(json::object message, json::object params, std::string method, RequestId id);
  /// Whether the header fields of a call mirror parameters.
  [[nodiscard]] bool mirrors_parameters() const;
  void arm(Number number, Request& request);
  /// Not silent, or not expected to say anything.
  void disarm_idle(Request& request);
  void disarm(Request& request);
  void give_up(Number number, const char* what);
  void unanswered(const RequestId& id, const Error& why);
  /// Why a request has no answer, with what the server has done wrong meanwhile.
  [[nodiscard]] Error explained(const Request& request, Error why) const;
  void end(Number number, Result<json::object> answer);
  /// Answers a request that could not be sent, in a later turn.
  void end_later(Number number, Error why);
  void tell_cancelled(const Request& request, std::string_view reason);

  /// Takes a message or a batch, which came in the reply to `only` if that is not null. If it
  /// answers another request, returns false.
  bool take(std::string_view text, const RequestId* only);
  bool take_one(std::string_view text, const RequestId* only);
  void on_response(const Message& message);
  /// Lists the tools again, from `cursor` on, and then sends the call again. If that fails, the
  /// call fails with `why`.
  void refresh_tools(Number number, const Error& why, std::string cursor, int pages);
  void on_input_required(Number number, const json::object& result);
  void on_input(Number number, std::uint64_t question, Result<json::object> answer);
  void next_round(Number number, Request& request);
  void withdraw(const Request& request);
  void withdraw_asked();
  void withdraw_later(std::uint64_t question);
  /// `reply_to`: as for take().
  void on_request(const Message& message, const RequestId* reply_to);
  void on_notification(const Message& message, const RequestId* reply_to);
  void reply(const RequestId& id, const json::object& members);
  /// The request in whose reply a message came; 0 if there is none.
  [[nodiscard]] Number request_of(const RequestId* reply_to) const;
  [[nodiscard]] bool can_be_asked(std::string_view method, const json::object& params) const;

  Executor* loop_;
  Options options_;
  ClientCapabilities capabilities_;  // as in the options
  ServerDescription server_;
  std::function<void(Result<ServerDescription>)> connecting_;  // empty once that is done
  std::optional<Error> lost_;                                  // why the link is over
  bool is_renewing_ = false;                                   // the session is being replaced
  bool has_no_session_ = false;                                // it could not be replaced
  std::vector<Number> held_;  // requests that wait for the new session
  bool has_probed_ = false;
  Number last_number_ = 0;
  std::int64_t last_id_ = 0;
  Requests requests_;
  std::map<std::int64_t, Number> by_id_;      // of the current rounds
  std::map<RequestId, std::uint64_t> asked_;  // requests of the server that are unanswered
  std::uint64_t last_question_ = 0;
  ToolHeaders tool_headers_;
  MessageParser parser_;
  std::uint64_t faults_ = 0;  // messages of the server that could not be read
  std::string last_fault_;    // why not
  LogLimit logged_faults_;
  std::unique_ptr<ServerLink> link_;
};

}  // namespace sluice

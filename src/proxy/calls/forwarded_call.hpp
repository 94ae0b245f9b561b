#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "proxy/calls/parked_calls.hpp"
#include "proxy/clients/proxy_client.hpp"
#include "server/calls/pending_request.hpp"

namespace sluice {

/// One request of a client on its way to one server, and the answer on its way back, with what
/// comes before it: progress, log messages, and questions to the client. A client of 2026-07-28 is
/// asked in rounds. The server knows nothing of these: its call stays open meanwhile, and the
/// client's next request goes on with it. Belongs to its loop; owned by shared pointers.
class ForwardedCall final : public UpstreamCall,
                            public StreamProducer,
                            public std::enable_shared_from_this<ForwardedCall> {
 public:
  /// Of `client`, to its part `index`.
  ForwardedCall(std::shared_ptr<ProxyClient> client, std::size_t index, std::string method,
                ParkedCalls& parked);
  ~ForwardedCall() override;
  ForwardedCall(const ForwardedCall&) = delete;
  ForwardedCall& operator=(const ForwardedCall&) = delete;

  /// Begins. `params` name what is the server's own without a prefix. `session` is the client's, or
  /// null.
  void start(json::object params, const std::shared_ptr<PendingRequest>& call,
             const std::shared_ptr<Session>& session);
  /// `then` is called if the server refuses or cannot be reached, before the client hears of it.
  void on_failure(std::function<void()> then) { failed_ = std::move(then); }
  /// Goes on with the next round of the request.
  void resume(const std::shared_ptr<PendingRequest>& call);
  [[nodiscard]] const ProxyClient& client() const { return *client_; }
  /// The client does not come back. Tells the server.
  void give_up();

  // UpstreamCall
  void on_progress(const json::object& params) override;
  void on_notification(std::string_view method, const json::object& params) override;
  [[nodiscard]] bool hears(std::string_view method, const json::object& params) const override;
  [[nodiscard]] bool can_ask() const override;
  [[nodiscard]] std::string_view task() const override { return task_; }
  [[nodiscard]] bool may_become_task() const override { return wants_task_; }
  void on_question(ServerQuestion question) override;
  void on_withdrawn(std::uint64_t question) override;
  void on_answer(Result<json::object> answer) override;
  void on_result(const json::object& result) override;

  // StreamProducer
  void on_writable() override { pause(false); }
  void on_cancel() override;

 private:
  struct Question {
    ServerQuestion asked;
    std::string key;  // towards the client
    PendingRequest::Withdraw withdraw;
    MemoryHold memory;  // between rounds
  };
  using Questions = std::map<std::uint64_t, Question>;

  [[nodiscard]] UpstreamSession& session() const { return *session_; }
  [[nodiscard]] std::optional<LoggingLevel> wanted_level() const;
  void attach(const std::shared_ptr<PendingRequest>& call);
  void detach();
  /// Makes the server wait while the client does not read.
  void pause(bool is_paused) { session().pause(number_, is_paused); }
  void on_open(const Result<void>& outcome);
  /// Once the session is open.
  void begin(json::object params);
  /// Counts the message as its client's until it has left, also if the client cancels it before. If
  /// there is no memory for it, the call has ended and it returns false.
  bool hold_message(const json::object& params);
  /// The server's own key for a question, if it can be kept and is new in this call; else one of
  /// ours.
  std::string key_for(const ServerQuestion& question);
  /// What a question takes while nothing else limits what waits for the client. Error:
  /// kLimitReached.
  [[nodiscard]] Result<MemoryHold> hold_for(const Question& question) const;
  void ask_one(std::uint64_t number);
  void ask_all();
  /// Ends a call that its client cannot go on with.
  void end(const Error& why);
  /// What the client is asked.
  [[nodiscard]] InputRequest request_of(const Question& question) const;
  void on_said(std::uint64_t number, Result<json::value> said);
  /// Takes the open questions back from the client.
  Questions take_back();
  void send(json::object params);
  /// Until the client comes back.
  void keep_answer(Result<json::object> answer);
  /// What the server has answered: delivers it, or begins a task.
  void take(Result<json::object> answer);
  /// From now on `call_` is the task's. Returns false if there can be none; then it is over.
  bool begin_task();
  /// Waits for the end of the server's task.
  void follow(const Result<void>& outcome);
  void deliver(Result<json::object> answer);

  std::shared_ptr<ProxyClient> client_;
  std::size_t index_;
  std::shared_ptr<UpstreamSession> session_;  // of the client's, when the call began
  std::string method_;
  ParkedCalls* parked_;
  std::shared_ptr<PendingRequest> call_;  // null between rounds, and at the end
  const Revision* revision_ = nullptr;    // of the client, once there is a call
  std::function<void()> failed_;          // or empty
  std::weak_ptr<Session> client_session_;
  bool has_session_ = false;
  MemoryHold memory_;                        // of params, which the session may send again
  std::shared_ptr<void> message_memory_;     // until it is sent
  std::shared_ptr<MemoryShare> share_;       // of the client, between rounds
  MemoryHold answer_memory_;                 // of answer_
  std::optional<json::object> params_;       // as long as they may have to be sent
  bool wants_task_ = false;                  // the server may make a task of it
  std::string task_;                         // the server's; empty: it has made none
  std::uint64_t number_ = 0;                 // of the request to the server; 0: it is not sent
  Questions questions_;                      // open ones
  std::set<std::string, std::less<>> keys_;  // of the server, so far
  bool asks_later_ = false;
  bool is_asking_ = false;
  bool is_given_up_ = false;
  std::optional<Result<json::object>> answer_;  // that came between rounds
};

}  // namespace sluice

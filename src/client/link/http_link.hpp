#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/backoff.hpp"
#include "client/link/authorized_http.hpp"
#include "client/link/last_words.hpp"
#include "client/link/request_authorizer.hpp"
#include "client/session/contract/server_link.hpp"
#include "core/clock.hpp"
#include "core/recycling.hpp"
#include "net/client/http_client.hpp"
#include "net/http/url.hpp"
#include "net/loop/event_loop.hpp"

namespace sluice {

struct HttpLinkOptions {
  Url url;                      // of the MCP endpoint
  HttpHeaderList headers = {};  // sent with each request, besides those of MCP
  HttpClientOptions http = {};
  std::shared_ptr<RequestAuthorizer> authorizer = {};  // null: requests are sent as they are
  std::size_t max_message = std::size_t{64} << 20U;    // of the server
  /// How long requests wait for the server to take that the client is ready.
  Duration ready_patience = std::chrono::seconds(5);
  /// For streams that have broken off (2025-11-25, Streamable HTTP, Resumability).
  Backoff::Policy resumption = {
      .first = std::chrono::seconds(1), .longest = std::chrono::seconds(30), .attempts = 8};
  /// A stream that has lasted so long has not failed, even if it had nothing to say: proxies end
  /// those that are quiet.
  Duration lasting = std::chrono::seconds(30);
};

/// Messages over Streamable HTTP, in both eras. Each message is a POST, and the replies carry the
/// answers. In the legacy era, the link keeps the session's id, resumes streams that have broken
/// off, and reads the stream of messages that belong to no request, if the server has one. An HTTP
/// status without a JSON-RPC message leaves its request unanswered, with the status as the code of
/// the error. So does a request for which there is no authorization.
class HttpLink final : public ServerLink {
 public:
  HttpLink(EventLoop& loop, HttpLinkOptions options);
  /// Ends a legacy session (DELETE), unless an answer in it was left to be taken up.
  ~HttpLink() override;
  HttpLink(const HttpLink&) = delete;
  HttpLink& operator=(const HttpLink&) = delete;

  void open(Owner& owner) override;
  /// Notifications are sent one after another, so that they arrive in order; of answers, those
  /// beyond kMaxAnswers wait. Errors: kBusy, if kMaxPosts messages are under way; and if kMaxPosts
  /// notifications, kMaxPosts answers, or kMaxWaiting bytes of either wait.
  Result<void> send(OutgoingMessage message) override;
  /// In the modern era, that the reply is not read any more cancels the request.
  bool drop(const RequestId& id) override;
  void leave_answer(const RequestId& id) override;
  /// Its URL without the query, which may have a key that changes.
  [[nodiscard]] std::string server() const override;
  [[nodiscard]] std::unique_ptr<ServerLink> take_up(const StreamPosition& from) override;
  void pause(const RequestId& id, bool is_paused) override;
  bool reopen() override { return true; }
  [[nodiscard]] bool carries_headers() const override { return true; }
  [[nodiscard]] bool tells_connected() const override { return true; }
  /// Sends what needs no answer, for at most LastWords::kLimit, and waits for the reply to the
  /// DELETE, for at most kFarewell.
  void close(std::function<void()> done) override;

  /// Whether the stream of a legacy session is open. Nothing waits for that: a server may send the
  /// head of that reply late, or have no such stream. What changes before is not told.
  [[nodiscard]] bool is_listening() const { return is_listening_; }

  static constexpr std::size_t kMaxPosts = 4096;  // under way
  /// Answers under way, so that a server that asks much and takes nothing does not use up the
  /// descriptors of this process.
  static constexpr std::size_t kMaxAnswers = 32;
  /// Replies to notifications and answers that the server has taken and may not end, and to those
  /// of a session that it has forgotten.
  static constexpr std::size_t kMaxTaken = 8;
  /// Streams of answered requests, which the server may not end.
  static constexpr std::size_t kMaxAnswered = 8;
  /// Bytes of the notifications that wait for others to end, if they are more than one, and of the
  /// answers.
  static constexpr std::size_t kMaxWaiting = std::size_t{64} << 20U;
  static constexpr Duration kFarewell = std::chrono::seconds(2);

 private:
  /// A POST and what becomes of its reply, or the GET of the standalone stream.
  class Exchange;
  /// POSTs of one kind that nobody waits for. Those that are too many wait for their turn.
  struct Lane {
    std::size_t most;
    std::size_t under_way = 0;
    std::deque<OutgoingMessage> waiting = {};
    std::size_t waiting_bytes = 0;
  };

  [[nodiscard]] HttpHeaderList headers_for(const OutgoingMessage& message) const;
  /// The lane that a message has to keep to; null if there is none.
  Lane* lane_of(const OutgoingMessage& message);
  /// What belongs to the old session holds up nothing of the new one.
  void forget_session();
  /// Drops the notifications and answers that wait to be sent.
  void forget_waiting();
  /// Sends a message, or lets it wait in its lane.
  void dispatch(OutgoingMessage&& message);
  void transmit(OutgoingMessage&& message, Lane* lane);
  void forget(std::uint64_t number);
  /// Nothing more is needed of an exchange, and the server may not end its reply. Ends the oldest
  /// of those that are beyond `most`.
  void keep_last(std::deque<std::uint64_t>& kept, std::size_t most, std::uint64_t number);
  /// A message has left its lane, or null if it was in none.
  void send_next(Lane* lane);
  void initialized(bool is_current);
  /// A stream of messages that belong to no request, which was refused authorization.
  struct Reopening {
    std::uint64_t after = 0;  // the last exchange that was begun before that; 0: there is none
    TimePoint not_before = TimePoint::min();
    bool was_open = false;
    std::string last_event = {};
    std::size_t refusals = 0;  // in a row
  };
  void listen(Reopening from);
  /// The exchange `number` was not refused: opens that stream again, if it was begun later.
  void reopen_stream(std::uint64_t number);
  /// The end of close().
  void leave();

  EventLoop* loop_;
  HttpLinkOptions options_;
  Owner* owner_ = nullptr;
  AuthorizedHttp http_;
  std::string session_id_;              // of a legacy session that has one
  const Revision* revision_ = nullptr;  // of a session, once it is agreed
  bool leaves_session_ = false;         // somebody else goes on with it
  std::optional<StreamPosition> from_;  // where open() takes up an answer
  bool is_listening_ = false;
  Reopening reopening_;
  /// The exchange that tells the server that the client is ready, until it is answered. What is
  /// sent meanwhile waits, because it could overtake that on another connection. 0: none.
  std::uint64_t initializing_ = 0;
  std::vector<OutgoingMessage> held_;
  Lane notifications_{.most = 1};
  Lane answers_{.most = kMaxAnswers};
  std::deque<std::uint64_t> taken_;     // the last exchanges that have left their lanes
  std::deque<std::uint64_t> answered_;  // the last ones whose requests are
  LastWords last_words_{*loop_};
  std::uint64_t last_number_ = 0;
  RecycledMap<std::uint64_t, std::shared_ptr<Exchange>> exchanges_;
};

}  // namespace sluice

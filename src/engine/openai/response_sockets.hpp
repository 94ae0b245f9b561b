#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "core/clock.hpp"
#include "engine/openai/answer_source.hpp"
#include "engine/openai/response_chain.hpp"
#include "net/client/websocket_client.hpp"
#include "net/http/url.hpp"
#include "net/loop/event_loop.hpp"

namespace sluice {

/// A WebSocket to a Responses API, on which one answer is under way at a time. Belongs to the loop.
class ResponseSocket {
 public:
  /// Hears of the answer under way. Called as WebSocketClientCallbacks are.
  class User {
   public:
    virtual ~User() = default;
    virtual void on_refused(const HttpReplyHead& head) = 0;
    virtual void on_open() = 0;
    virtual void on_message(std::string_view text) = 0;
    virtual void on_end(const Error& why) = 0;
  };

  ResponseSocket(EventLoop& loop, const Url& url, HttpHeaderList headers,
                 WebSocketClientOptions options);

  void set_user(std::weak_ptr<User> user) { user_ = std::move(user); }
  WebSocketClient& client() { return client_; }
  ResponseChain& chain() { return chain_; }
  [[nodiscard]] bool is_open() const { return client_.is_open(); }
  [[nodiscard]] TimePoint opened_at() const { return opened_at_; }
  /// The id of the last answer that was whole; empty: there was none.
  [[nodiscard]] const std::string& last_response() const { return last_response_; }
  void note_response(std::string_view id) { last_response_ = id; }

 private:
  WebSocketClientCallbacks callbacks();

  std::weak_ptr<User> user_;
  ResponseChain chain_;
  std::string last_response_;
  TimePoint opened_at_;
  WebSocketClient client_;
};

/// The sockets of an engine that are open and not in use. Servers remember the last response of a
/// connection, so a conversation goes on over its own one. Bounded: kMaxIdle sockets, each for
/// kKeepIdle, and none that is older than kMaxAge. Belongs to the loop.
class ResponseSockets {
 public:
  static constexpr std::size_t kMaxIdle = 8;
  static constexpr Duration kKeepIdle = std::chrono::minutes(5);
  /// OpenAI closes connections after 60 minutes.
  static constexpr Duration kMaxAge = std::chrono::minutes(55);

  ResponseSockets(EventLoop& loop, Url url, HttpHeaderList headers, WebSocketClientOptions options);
  ~ResponseSockets();
  ResponseSockets(const ResponseSockets&) = delete;
  ResponseSockets& operator=(const ResponseSockets&) = delete;

  /// The socket on which the server remembers the conversation of `request`; or, if there are
  /// kMaxIdle others, the one that was not used for longest; else null.
  std::unique_ptr<ResponseSocket> take(const GenerationRequest& request);
  std::unique_ptr<ResponseSocket> open();
  void give_back(std::unique_ptr<ResponseSocket> socket);

 private:
  struct Idle {
    std::unique_ptr<ResponseSocket> socket;
    TimePoint since;
  };
  void drop_stale();

  EventLoop* loop_;
  Url url_;
  HttpHeaderList headers_;
  WebSocketClientOptions options_;
  std::list<Idle> idle_;  // the one that was used last is the last
  Executor::TimerId timer_ = 0;
};

}  // namespace sluice

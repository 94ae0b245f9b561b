#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/link/authorized_http.hpp"
#include "client/link/last_words.hpp"
#include "client/link/paused_requests.hpp"
#include "client/link/request_authorizer.hpp"
#include "client/session/contract/server_link.hpp"
#include "net/client/http_client.hpp"
#include "net/http/sse.hpp"
#include "net/http/url.hpp"
#include "net/loop/event_loop.hpp"

namespace sluice {

struct SseLinkOptions {
  Url url;                      // of the event stream
  HttpHeaderList headers = {};  // sent with each request
  HttpClientOptions http = {};
  std::shared_ptr<RequestAuthorizer> authorizer = {};  // null: requests are sent as they are
  std::size_t max_message = std::size_t{64} << 20U;    // of the server
};

/// Messages over HTTP with SSE (2024-11-05, Transports): the server's come as events of one stream,
/// whose first event says where the client posts its own. That place must be of the same origin, so
/// that nothing secret goes elsewhere. The link is lost with its stream.
class SseLink final : public ServerLink {
 public:
  SseLink(EventLoop& loop, SseLinkOptions options);
  ~SseLink() override;
  SseLink(const SseLink&) = delete;
  SseLink& operator=(const SseLink&) = delete;

  void open(Owner& owner) override;
  /// What is sent before the server has said where waits for that. Error: kBusy beyond kMaxPosts
  /// or kMaxWaiting.
  Result<void> send(OutgoingMessage message) override;
  bool drop(const RequestId& id) override;
  void pause(const RequestId& id, bool is_paused) override;
  [[nodiscard]] bool shares_connection() const override { return true; }
  bool reopen() override;
  /// Waits until the server has taken notifications and answers, for at most LastWords::kLimit. Its
  /// stream stays open until then, because the session ends with that.
  void close(std::function<void()> done) override;

  static constexpr std::size_t kMaxPosts = 4096;  // under way, or that wait
  /// Bytes of these, if they are more than one.
  static constexpr std::size_t kMaxWaiting = std::size_t{64} << 20U;
  /// Answers to the server under way at once, so that a server that asks much and takes nothing
  /// does not use up the descriptors of this process.
  static constexpr std::size_t kMaxAnswers = 32;
  /// Posts of requests that are over: a server may not end its replies to them. Their messages are
  /// not counted any more, so posts of messages beyond kMaxOverBytes end with their requests.
  static constexpr std::size_t kMaxOver = 8;
  static constexpr std::size_t kMaxOverBytes = std::size_t{16} << 10U;

 private:
  /// Messages of a kind, of which not all may be under way at once. The others wait in their order.
  struct Lane {
    std::size_t most;
    std::size_t under_way = 0;
    std::deque<OutgoingMessage> waiting = {};
  };

  struct Post {
    AuthorizedHttp::Call call;
    RequestId id;
    Lane* lane = nullptr;
    std::size_t bytes = 0;
    std::shared_ptr<void> memory;

    [[nodiscard]] bool is_large() const { return bytes > kMaxOverBytes; }
  };

  void connect();
  void on_head(const HttpReplyHead& head);
  void on_bytes(std::string_view bytes);
  void on_event(const SseEvent& event);
  /// Posts a message, or lets it wait in its lane.
  void dispatch(OutgoingMessage message);
  /// `lane`: that it is in, or null.
  void post(OutgoingMessage message, Lane* lane);
  void sweep_in_turn();
  /// Releases the posts of requests that are over, and ends the large ones and the oldest beyond
  /// kMaxOver.
  void sweep();
  /// What a message takes while it waits or is under way is free again.
  void release(Post& post);
  void taken(std::uint64_t number);
  void leave_lane(Post& post);
  void posted(std::uint64_t number, const Error& why);
  void lose(int code, const std::string& why);
  /// The end of close().
  void leave();

  EventLoop* loop_;
  SseLinkOptions options_;
  Owner* owner_ = nullptr;
  AuthorizedHttp http_;
  bool is_over_ = true;  // there is no stream
  AuthorizedHttp::Call stream_;
  PausedRequests paused_;
  std::shared_ptr<SseDecoder> events_;  // callbacks of the decoder may destroy this link
  int status_ = 0;
  std::optional<Url> place_;              // where to post; nothing before the server has said it
  std::vector<OutgoingMessage> waiting_;  // for that
  std::map<std::uint64_t, Post> posts_;
  std::deque<std::uint64_t> taken_;  // the last posts that have left their lanes
  Lane notifications_{.most = 1};    // which must not overtake each other
  Lane answers_{.most = kMaxAnswers};
  std::size_t bytes_ = 0;    // of all that wait or are under way
  std::size_t unswept_ = 0;  // posts that the messages since the last sweep allow to look at
  std::uint64_t last_number_ = 0;
  LastWords last_words_{*loop_};
  /// Whether this exists, for callbacks.
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace sluice

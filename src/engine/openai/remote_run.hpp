#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/backoff.hpp"
#include "core/clock.hpp"
#include "core/executor.hpp"
#include "engine/engine.hpp"
#include "engine/openai/chat_decoder.hpp"
#include "net/client/http_client.hpp"
#include "net/http/sse.hpp"

namespace sluice {

/// One answer of a remote model: the request, and its reply as deltas for a sink. Belongs to a
/// loop, but for status().
class RemoteRun final : public std::enable_shared_from_this<RemoteRun> {
 public:
  /// `done` is told the end, before the sink, and once. `request` is sent with begin().
  using Done = std::function<void(const Completion&, const ChatRepairs&)>;
  RemoteRun(EventLoop& loop, HttpClient& http, HttpClientRequest request, Duration idle_timeout,
            std::shared_ptr<GenerationSink> sink, Done done);

  void begin();
  void cancel();
  /// The sink has room again.
  void resume();
  /// Thread-safe.
  [[nodiscard]] GenerationStatus status() const;

  // HttpReplyCallbacks

  void on_head(const HttpReplyHead& head);
  void on_body(std::string_view bytes);
  void on_complete();
  void on_failure(const Error& why);

 private:
  void send();
  void take_event(std::string_view data);
  /// Gives the sink what it takes, and ends when all is delivered and nothing more comes.
  void deliver();
  /// Nothing more comes. `why`: not even the end of the answer.
  void stop(std::optional<Error> why);
  /// Sends the request again after a while. Returns false if that is not possible any more.
  bool retry();
  /// The reply is no answer.
  [[nodiscard]] Error refusal() const;
  void complete(Completion completion);
  void watch_silence();

  EventLoop* loop_;
  HttpClient* http_;
  HttpClientRequest request_;
  const Duration idle_timeout_;
  std::shared_ptr<GenerationSink> sink_;  // null once it has heard the end
  Done done_;
  HttpClient::Call call_;
  SseDecoder events_;
  ChatDecoder answer_;
  Backoff retries_;
  int status_code_ = 0;
  bool is_stream_ = false;
  std::string body_;                    // of a reply that is no stream
  std::optional<Duration> asked_wait_;  // by the server, before it is asked again
  std::deque<Delta> waiting_;           // deltas that the sink has not taken
  bool is_full_ = false;                // the sink
  std::optional<Completion> ending_;    // once nothing more comes
  TimePoint began_at_{};
  TimePoint first_at_{};  // the first delta
  TimePoint heard_at_{};
  Executor::TimerId timer_ = 0;
  std::atomic<GenerationStatus::Phase> phase_ = GenerationStatus::Phase::queued;
  std::atomic<std::uint32_t> deltas_ = 0;
};

}  // namespace sluice

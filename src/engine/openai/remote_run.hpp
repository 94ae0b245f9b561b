#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/backoff.hpp"
#include "core/clock.hpp"
#include "core/executor.hpp"
#include "engine/engine.hpp"
#include "engine/openai/answer_decoder.hpp"
#include "engine/openai/answer_source.hpp"
#include "net/loop/event_loop.hpp"

namespace sluice {

struct RemoteRunOptions {
  /// Makes a decoder of the API that is asked; each request that is sent has a new one.
  std::function<std::unique_ptr<AnswerDecoder>()> make_decoder;
  Duration idle_timeout;                  // how long the server may say nothing
  std::vector<std::string> secrets = {};  // that the server may repeat, to be masked
  std::string_view hint = {};             // follows the error if the server does not have this API
};

/// One answer of a remote model: the request, and its reply as deltas for a sink. A request whose
/// answer has not begun is sent again, at most twice, if the connection fails or the server is in
/// passing trouble. Belongs to a loop, but for status().
class RemoteRun final : public AnswerSource::Owner, public std::enable_shared_from_this<RemoteRun> {
 public:
  /// `done` is told the end, before the sink, and once.
  using Done = std::function<void(const Completion&, AnswerRepairs)>;
  RemoteRun(EventLoop& loop, RemoteRunOptions options, std::shared_ptr<GenerationSink> sink,
            Done done);

  /// Sends the request of `source`.
  void begin(std::unique_ptr<AnswerSource> source);
  void cancel();
  /// The sink has room again.
  void resume();
  /// Thread-safe.
  [[nodiscard]] GenerationStatus status() const;

 private:
  void on_heard() override;
  void on_event(std::string_view name, std::string_view data) override;
  void on_caught_up() override;
  void on_end() override;
  void on_refusal(int status, std::string_view body, std::optional<Duration> wait) override;
  void on_failure(const Error& why) override;
  void on_nonsense(const Error& why) override;

  void send();
  [[nodiscard]] bool is_over() const { return ending_ || sink_ == nullptr; }
  /// Gives the sink what it takes, and ends when all is delivered and nothing more comes.
  void deliver();
  /// Nothing more comes. `why`: not even the end of the answer.
  void stop(std::optional<Error> why);
  /// Sends the request again after a while. Returns false if that is not possible any more.
  bool retry(std::optional<Duration> asked_wait);
  [[nodiscard]] Error refusal(int status, std::string_view body) const;
  void complete(Completion completion);
  void watch_silence();

  EventLoop* loop_;
  RemoteRunOptions options_;
  std::shared_ptr<GenerationSink> sink_;  // null once it has heard the end
  Done done_;
  std::unique_ptr<AnswerSource> source_;  // null before begin() and after the end
  std::unique_ptr<AnswerDecoder> answer_;
  Backoff retries_;
  std::deque<Delta> waiting_;         // deltas that the sink has not taken
  bool is_full_ = false;              // the sink
  std::optional<Completion> ending_;  // once nothing more comes
  TimePoint began_at_{};
  TimePoint first_at_{};  // the first delta
  TimePoint heard_at_{};
  Executor::TimerId timer_ = 0;
  std::atomic<GenerationStatus::Phase> phase_ = GenerationStatus::Phase::queued;
  std::atomic<std::uint32_t> deltas_ = 0;
};

}  // namespace sluice

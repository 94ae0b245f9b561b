#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/session/contract/server_link.hpp"
#include "core/error.hpp"
#include "engine/rkllm/worker/token_ring.hpp"
#include "json/json.hpp"
#include "net/loop/event_loop.hpp"

namespace sluice::rkllm {

/// How a worker is started.
struct WorkerCommand {
  std::vector<std::string> arguments;  // of a program that calls run_worker()
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::size_t ring_bytes = std::size_t{1} << 20U;
};

/// A process with a runtime in it, which may hang or die at any time. Belongs to its loop, as does
/// whoever is told. Nobody is told of anything within its functions.
class WorkerProcess final : private ServerLink::Owner, private EventLoop::Watcher {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    /// A run has put this out. The bytes are valid during the call. May destroy the process.
    virtual void on_output(const TokenRecord& output) = 0;
    /// The process is over, and why, such as "it was ended by SIGSEGV". Requests that are
    /// unanswered stay so. May destroy the process. Called once, last.
    virtual void on_gone(const std::string& why) = 0;
  };

  /// `owner` outlives it. Errors: 400, there is no such program; 500, the system refuses.
  static Result<std::unique_ptr<WorkerProcess>> start(EventLoop& loop, const WorkerCommand& command,
                                                      Owner& owner);
  /// Ends the process as a ChildProcess is: a worker ends with its input.
  ~WorkerProcess() override;
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  /// Asks for what worker_messages.hpp names. `then` is told the result, or the worker's error,
  /// after all that a run has put out; it may destroy the process. Never, if the process ends
  /// first.
  using Answered = std::function<void(Result<json::object>)>;
  void ask(std::string_view method, const json::object& params, Answered then);
  /// Ends the process with SIGKILL; on_gone() follows.
  void kill() const;
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  WorkerProcess(EventLoop& loop, TokenRing ring, Owner& owner);

  Result<void> open(const WorkerCommand& command);
  /// Passes on what is in the ring. Returns false if this is gone, or its memory is damaged.
  bool drain();
  void lose(const std::string& why);

  void on_ready(std::uint32_t events) override;
  void on_message(std::string_view text) override;
  bool on_reply(const RequestId& /*id*/, std::string_view /*text*/) override { return true; }
  void on_unreadable(std::string_view text, const Error& why) override;
  void on_unanswered(const RequestId& /*id*/, const Error& /*why*/) override {}
  void on_session_over(const RequestId& /*id*/) override {}
  [[nodiscard]] bool awaits(const RequestId& /*id*/) const override { return true; }
  void on_lost(const Error& why) override;

  EventLoop* loop_;
  TokenRing ring_;
  Owner* owner_;  // null: it has been told of the end
  std::unique_ptr<ServerLink> link_;
  pid_t pid_ = 0;
  std::map<std::uint64_t, Answered> asked_;
  std::uint64_t last_id_ = 0;
  MessageParser parser_;
  /// Whether this exists, for what runs while it may be destroyed.
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace sluice::rkllm

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "engine/grammar/token_pieces.hpp"
#include "engine/rkllm/runtime/runtime.hpp"
#include "engine/rkllm/worker/token_ring.hpp"
#include "json/json.hpp"
#include "rpc/message.hpp"

namespace sluice::rkllm {

struct RunRequest;

/// Holds a runtime for the server that asks (worker_messages.hpp). Requests are carried out one
/// after another on a thread of its own, except for rkllm_abort and rkllm_is_running, which take()
/// calls at once. What a run puts out goes to the ring before its response; of one that was aborted
/// only the end does.
class Worker {
 public:
  /// `reply` takes a line for the server, without its end. It is called on both threads, one at a
  /// time.
  Worker(TokenRing ring, std::function<void(std::string_view)> reply);
  /// Waits for the request under way.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Takes a line of the server.
  void take(std::string_view line);

  /// The most requests that wait; more are refused.
  static constexpr std::size_t kMaxWaiting = 64;
  /// The most arrays of cross attention that are refused one after another.
  static constexpr std::size_t kMaxRefused = 4;

 private:
  struct Request {
    RequestId id;
    std::string method;
    json::object params;
  };
  using Outcome = Result<json::value>;

  void work();
  Outcome carry_out(const std::string& method, const json::object& params);
  Outcome open(const json::object& params);
  Outcome init(const json::object& params);
  Outcome test_tokens(const json::object& params);
  Outcome run(const json::object& params);
  /// A run whose tokens are chosen here.
  Outcome run_by_tokens(const RunRequest& request);
  /// The run is within rkllm_run() from here to leave(). False: nobody wants it, so it is not,
  /// unless it `must` be.
  bool enter(std::uint64_t run, bool must);
  void leave();
  Outcome abort(const json::object& params);
  /// Takes out of the runtime's cache what a run without text has left there, so that no prompt
  /// goes on from it. Error kInternalError: the runtime does not.
  Result<void> clear_foreign_cache();
  Outcome set_cross_attention(const json::object& params);
  /// Passes on what a run puts out. False: it has to wait in `unwritten_`.
  bool put_out(std::uint64_t run, const Output& output);
  /// Waits until there is room for what waits. False: there is never room for it.
  bool put_out_rest();
  void answer(const RequestId& id, const Outcome& outcome);

  struct Unwritten {
    TokenRecord record;  // but for its bytes
    std::string bytes;
  };

  TokenRing ring_;
  std::vector<Unwritten> unwritten_;  // of one call of the callback
  const std::function<void(std::string_view)> reply_;
  std::mutex reply_mutex_;
  MessageParser parser_;
  struct CrossAttention {
    std::vector<float> k, v, mask;
    std::vector<std::int32_t> positions;
  };
  /// What the runtime may use, which it outlives: what it has taken last, and what it has refused
  /// since then, as nobody knows whether it has kept that.
  std::vector<CrossAttention> cross_attention_;
  std::unique_ptr<Runtime> runtime_;
  std::shared_ptr<const TokenPieces> tokens_;  // null: none may be chosen here
  bool shows_special_tokens_ = false;
  bool has_foreign_cache_ = false;
  std::atomic<Runtime*> ready_ = nullptr;  // once it has a model
  std::mutex run_mutex_;
  std::uint64_t running_ = 0;                // the run that is within rkllm_run(); 0: none
  std::atomic<std::uint64_t> unwanted_ = 0;  // runs up to this one were aborted
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request> waiting_;
  bool is_over_ = false;
  std::thread thread_;  // last, as it uses all of the above
};

/// The whole life of a worker process, whose standard streams go to the server, and whose further
/// descriptors are the files of the ring in their order. Ends the process when its input ends, and
/// whatever the runtime does then. Returns only if it cannot begin. Error: it was started by
/// somebody else.
Error run_worker();

}  // namespace sluice::rkllm

#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "engine/llama/llama_run.hpp"
#include "engine/llama/request_preparer.hpp"
#include "engine/llama/scheduling/admission_queue.hpp"

namespace sluice {

/// A thread that prepares requests which take long to prepare: it renders templates, tokenizes, and
/// reads schemas and grammars, so that neither a loop nor the model waits for that. Principals are
/// served in turn. One request takes up to some tenths of a second. Thread-safe.
class Preparation {
 public:
  /// `done` gets every run, prepared, with a fault, or as it came if it was cancelled or the engine
  /// stops. It is called on this thread or the caller's. `preparer` must outlive this.
  Preparation(const RequestPreparer& preparer, std::function<void(RunPtr)> done);
  ~Preparation() { stop(); }
  Preparation(const Preparation&) = delete;
  Preparation& operator=(const Preparation&) = delete;

  /// False: it has been stopped, and `run` is not taken.
  bool put(RunPtr run);
  /// Hands on what was cancelled while it waits.
  void release_cancelled();
  /// Hands on all that waits and ends the thread. Waits for at most one request.
  void stop();

 private:
  void work();
  void hand_on(std::function<bool(const RunPtr&)> which);

  const RequestPreparer& preparer_;
  const std::function<void(RunPtr)> done_;
  std::mutex mutex_;
  std::condition_variable changed_;
  AdmissionQueue<RunPtr> queue_;  // bounded by the engine
  bool stopped_ = false;
  std::mutex join_mutex_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace sluice

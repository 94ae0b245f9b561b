#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "engine/admission_queue.hpp"
#include "engine/llama/llama_run.hpp"
#include "engine/llama/request_preparer.hpp"

namespace sluice {

/// A thread that prepares requests. It renders templates, tokenizes, and parses
/// schemas and grammars, so that neither an event loop nor the model waits for that. Principals are
/// served in turn. One request takes about a second at most. Thread-safe.
class Preparation {
 public:
  /// `done` receives every run: prepared, with a fault, or unprepared if it was cancelled or the
  /// engine stops. It is called on this thread or on the caller's, and must not call this object.
  /// After stop() it is not called again. `preparer` must outlive this object.
  Preparation(const RequestPreparer& preparer, std::function<void(RunPtr)> done);
  ~Preparation() { stop(); }
  Preparation(const Preparation&) = delete;
  Preparation& operator=(const Preparation&) = delete;

  /// Returns false, and does not take `run`, if the thread has been stopped.
  bool put(RunPtr run);
  /// Passes on runs that were cancelled while they wait.
  void release_cancelled();
  /// Passes on all waiting runs and ends the thread. Waits for at most one request.
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
  std::thread thread_;  // last, because it uses all of the above
};

}  // namespace sluice

#pragma once

#include <cstdint>
#include <memory>
#include <thread>

#include "net/loop/event_loop.hpp"

namespace sluice {

/// The event loop of all clients of this process, on a thread of its own, which receives no
/// signals. It runs while somebody has a pointer to it. A process that is forked off has no such
/// thread, and gets a new loop from shared(). Thread-safe.
class BackgroundLoop {
 public:
  static std::shared_ptr<BackgroundLoop> shared();
  BackgroundLoop();
  /// On another thread than the loop's, waits for its end.
  ~BackgroundLoop();
  BackgroundLoop(const BackgroundLoop&) = delete;
  BackgroundLoop& operator=(const BackgroundLoop&) = delete;

  [[nodiscard]] EventLoop& loop() { return *loop_; }
  /// Whether the calling thread is that of such a loop.
  static bool is_current();
  /// Whether this process was forked off after the loop was made. Nothing of the loop and of what
  /// belongs to it may be touched then, nor destroyed: it shares descriptors with the parent's.
  [[nodiscard]] bool is_of_parent() const;

 private:
  const std::uint64_t forks_;        // that have led to this process, when the loop was made
  std::shared_ptr<EventLoop> loop_;  // shared with the thread
  std::thread thread_;
};

}  // namespace sluice

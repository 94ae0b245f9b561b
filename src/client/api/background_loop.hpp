#pragma once

#include <memory>
#include <thread>

#include "net/loop/event_loop.hpp"

namespace sluice {

/// The event loop of all clients of this process, on a thread of its own, which receives no
/// signals. It runs while somebody has a pointer to it. Thread-safe.
class BackgroundLoop {
 public:
  static std::shared_ptr<BackgroundLoop> shared();
  BackgroundLoop();
  /// On another thread than the loop's, waits for its end.
  ~BackgroundLoop();
  BackgroundLoop(const BackgroundLoop&) = delete;
  BackgroundLoop& operator=(const BackgroundLoop&) = delete;

  [[nodiscard]] EventLoop& loop() { return *loop_; }

 private:
  std::shared_ptr<EventLoop> loop_;  // shared with the thread
  std::thread thread_;
};

}  // namespace sluice

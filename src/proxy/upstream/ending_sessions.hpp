#pragma once

#include <cstddef>
#include <functional>
#include <utility>

namespace sluice {

/// Counts the sessions with servers that have begun to end, whoever they belonged to: a program
/// that is a server has some seconds for its end. Belongs to a loop.
class EndingSessions {
 public:
  void begin() { ++count_; }
  void end() {
    if (--count_ == 0) tell();
  }
  /// `done` is called once, when none is left that has begun to end; now, if there is none.
  void when_none(std::function<void()> done) {
    done_ = std::move(done);
    if (count_ == 0) tell();
  }

 private:
  void tell() {
    if (const auto done = std::exchange(done_, {})) done();
  }

  std::size_t count_ = 0;
  std::function<void()> done_;
};

}  // namespace sluice

#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "core/executor.hpp"

namespace sluice {

class ForwardedCall;

/// Calls that a server is still working on while their clients answer what it has asked, between
/// the rounds of a request (2026-07-28, Multi Round-Trip Requests). Each is found by its principal
/// and the key of its rounds, which only the client of the request can present. Belongs to its
/// loop.
class ParkedCalls {
 public:
  explicit ParkedCalls(Executor& loop) : loop_(&loop) {}
  ~ParkedCalls();
  ParkedCalls(const ParkedCalls&) = delete;
  ParkedCalls& operator=(const ParkedCalls&) = delete;

  [[nodiscard]] bool is_full() const { return calls_.size() >= kMaxCalls; }
  /// Keeps `call` until it is taken or kAnswerTime has passed; then it is given up.
  void add(const std::string& key, std::shared_ptr<ForwardedCall> call);
  /// Null: there is none.
  std::shared_ptr<ForwardedCall> take(const std::string& key);
  void clear();

  static constexpr std::size_t kMaxCalls = 1000;
  static constexpr Duration kAnswerTime = std::chrono::minutes(10);

 private:
  struct Parked {
    std::shared_ptr<ForwardedCall> call;
    Executor::TimerId timer;
  };
  void give_up(const std::string& key);

  Executor* loop_;
  std::map<std::string, Parked, std::less<>> calls_;
};

}  // namespace sluice

#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/executor.hpp"

namespace sluice {

class ClientPool;
class ForwardedCall;
class PendingRequest;

/// Calls that a server is still working on while their clients answer what it has asked, between
/// the rounds of a request (2026-07-28, Multi Round-Trip Requests). Each is found by its principal
/// and the key of its rounds, which only the client of the request can present. Meanwhile it has no
/// place in the pool, so that clients that do not come back keep nobody out. Belongs to its loop.
class ParkedCalls {
 public:
  struct Key {
    std::string principal;
    std::string rounds;

    friend auto operator<=>(const Key& a, const Key& b) = default;
  };
  static Key key_of(PendingRequest& call);

  ParkedCalls(Executor& loop, std::weak_ptr<ClientPool> pool)
      : loop_(&loop), pool_(std::move(pool)) {}
  ~ParkedCalls();
  ParkedCalls(const ParkedCalls&) = delete;
  ParkedCalls& operator=(const ParkedCalls&) = delete;

  /// Keeps `call` until it is taken or kAnswerTime has passed; then it is given up. If there
  /// are more than kMaxCalls, the client (client_of() the principal) that has most loses its
  /// oldest.
  void add(const Key& key, std::shared_ptr<ForwardedCall> call);
  /// The call that `next` goes on with. Errors: kInvalidParams, if it is not here; kBusy, if the
  /// pool has no place for it now: it stays here.
  Result<std::shared_ptr<ForwardedCall>> take(PendingRequest& next);
  void clear();

  static constexpr std::size_t kMaxCalls = 256;
  static constexpr Duration kAnswerTime = std::chrono::minutes(10);

 private:
  struct Parked {
    std::shared_ptr<ForwardedCall> call;
    std::string client;
    std::uint64_t number = 0;     // the later, the higher
    bool has_left_place = false;  // in the pool
    Executor::TimerId timer = 0;
  };
  using Calls = std::map<Key, Parked>;

  void make_room();
  std::shared_ptr<ForwardedCall> remove(Calls::iterator parked);
  void give_up(const Key& key);

  Executor* loop_;
  std::weak_ptr<ClientPool> pool_;
  Calls calls_;
  std::uint64_t last_number_ = 0;
};

}  // namespace sluice

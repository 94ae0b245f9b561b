#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/error.hpp"
#include "core/log/over_limit.hpp"
#include "engine/engine.hpp"

namespace sluice {

/// Counts each client's generations that are running or waiting. Their total is limited, and no
/// client can take all places: a client may have as many as are still free. One client thus leaves
/// half of the places free, a second one a quarter, and so on. A client may always have `least`
/// places, except the very last one. Thread-safe.
class QueueShares : public std::enable_shared_from_this<QueueShares> {
 public:
  /// A taken place, which is returned when this object is destroyed.
  class Ticket {
   public:
    Ticket(std::shared_ptr<QueueShares> shares, std::string client)
        : shares_(std::move(shares)), client_(std::move(client)) {}
    ~Ticket() { shares_->give_back(client_); }
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;

   private:
    const std::shared_ptr<QueueShares> shares_;
    const std::string client_;
  };

  /// `all` is the number of places, at least 1. `least` is how many a client may have regardless of
  /// others.
  QueueShares(std::uint32_t all, std::uint32_t least)
      : all_(all), least_(std::min(least, all - 1)) {}

  /// Error: kBusy if all places or the share of `client` are taken.
  Result<std::unique_ptr<Ticket>> take(const std::string& client) {
    const std::lock_guard lock(mutex_);
    if (taken_ >= all_) return over_limit("the model's queue is full; try again later", kBusy);
    std::uint32_t& own = own_[client];
    if (own >= std::max(all_ - taken_, least_)) {
      return over_limit("you have " + std::to_string(own) +
                            " generations in progress, which is your share of the model's "
                            "queue; wait for one to end",
                        kBusy);
    }
    ++own;
    ++taken_;
    return std::make_unique<Ticket>(shared_from_this(), client);
  }

 private:
  void give_back(const std::string& client) {
    const std::lock_guard lock(mutex_);
    const auto own = own_.find(client);
    if (--own->second == 0) own_.erase(own);
    --taken_;
  }

  const std::uint32_t all_;
  const std::uint32_t least_;
  std::mutex mutex_;
  std::uint32_t taken_ = 0;
  std::map<std::string, std::uint32_t> own_;
};

}  // namespace sluice

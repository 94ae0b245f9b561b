#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace sluice {

/// One connection's place among those that a server may have. Gives it back when it is destroyed,
/// on any thread, also when the server has gone.
class ConnectionTicket {
 public:
  using Count = std::shared_ptr<std::atomic<std::size_t>>;

  ConnectionTicket() = default;
  /// `of_client`: how many its client has, or null.
  explicit ConnectionTicket(Count count, Count of_client = nullptr)
      : count_(std::move(count)), of_client_(std::move(of_client)) {
    count_->fetch_add(1, std::memory_order_relaxed);
    if (of_client_ != nullptr) of_client_->fetch_add(1, std::memory_order_relaxed);
  }
  ConnectionTicket(ConnectionTicket&&) noexcept = default;
  ConnectionTicket& operator=(ConnectionTicket&& other) noexcept {
    std::swap(count_, other.count_);
    std::swap(of_client_, other.of_client_);
    return *this;
  }
  ~ConnectionTicket() {
    if (count_ != nullptr) count_->fetch_sub(1, std::memory_order_relaxed);
    if (of_client_ != nullptr) of_client_->fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  Count count_;
  Count of_client_;
};

}  // namespace sluice

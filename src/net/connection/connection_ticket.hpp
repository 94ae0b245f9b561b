#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace sluice {

/// The number of open connections of a server, or of one of its clients. Thread-safe.
struct ConnectionCount {
  std::atomic<std::size_t> open = 0;
  std::atomic<std::size_t> refused = 0;     // open too, but only to be told so; not in `open`
  std::atomic<std::size_t> handshakes = 0;  // bytes that TLS handshakes under way hold
  const std::shared_ptr<ConnectionCount> all = {};  // the server's, which includes them; or null
};

/// Counts one connection as open or as refused as long as it lives. May be destroyed on any thread,
/// even after the server.
class ConnectionTicket {
 public:
  using Count = std::shared_ptr<ConnectionCount>;

  ConnectionTicket() = default;
  explicit ConnectionTicket(Count count, bool is_refused = false)
      : count_(std::move(count)), is_refused_(is_refused) {
    for (ConnectionCount* each = count_.get(); each != nullptr; each = each->all.get()) {
      connections(*each).fetch_add(1, std::memory_order_relaxed);
    }
  }
  ConnectionTicket(ConnectionTicket&&) noexcept = default;
  ConnectionTicket& operator=(ConnectionTicket&& other) noexcept {
    std::swap(count_, other.count_);
    std::swap(is_refused_, other.is_refused_);
    return *this;
  }
  ~ConnectionTicket() {
    for (ConnectionCount* each = count_.get(); each != nullptr; each = each->all.get()) {
      connections(*each).fetch_sub(1, std::memory_order_relaxed);
    }
  }

  /// Takes `bytes` for a TLS handshake of this connection. All handshakes under way may hold `most`
  /// bytes. Returns false if those of this client would hold more than is still free, so one client
  /// alone can hold half.
  [[nodiscard]] bool take_for_handshake(std::size_t bytes, std::size_t most) {
    if (count_ == nullptr) return true;
    const ConnectionCount& all = count_->all == nullptr ? *count_ : *count_->all;
    if (count_->handshakes.load() + all.handshakes.load() + bytes > most) return false;
    for (ConnectionCount* each = count_.get(); each != nullptr; each = each->all.get()) {
      each->handshakes.fetch_add(bytes);
    }
    return true;
  }
  void give_back_of_handshake(std::size_t bytes) {
    for (ConnectionCount* each = count_.get(); each != nullptr; each = each->all.get()) {
      each->handshakes.fetch_sub(bytes);
    }
  }

 private:
  [[nodiscard]] std::atomic<std::size_t>& connections(ConnectionCount& count) const {
    return is_refused_ ? count.refused : count.open;
  }

  Count count_;
  bool is_refused_ = false;
};

}  // namespace sluice

#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace sluice {

/// Limits what each client (client_of() the principal) has in progress, on all loops together. Used
/// when something begins and ends, never for a chunk. Thread-safe. Must outlive its units.
class ClientQuota {
  using Counts = std::map<std::string, std::size_t, std::less<>>;

 public:
  /// One thing that a client has in progress, or nothing. The destructor ends it, and needs no
  /// memory for that. Not thread-safe.
  class Unit {
   public:
    Unit() = default;
    Unit(Unit&& other) noexcept
        : quota_(std::exchange(other.quota_, nullptr)), place_(other.place_) {}
    Unit& operator=(Unit&& other) noexcept {
      std::swap(quota_, other.quota_);
      std::swap(place_, other.place_);
      return *this;
    }
    ~Unit() { release(); }

    explicit operator bool() const { return quota_ != nullptr; }
    void release() {
      if (quota_ != nullptr) std::exchange(quota_, nullptr)->release(place_);
    }

   private:
    friend class ClientQuota;
    Unit(ClientQuota& quota, Counts::iterator place) : quota_(&quota), place_(place) {}

    ClientQuota* quota_ = nullptr;
    Counts::iterator place_;
  };

  explicit ClientQuota(std::size_t per_client) : per_client_(per_client) {}
  /// Returns an empty unit if the client has as many as it may.
  [[nodiscard]] Unit take(const std::string& principal);
  [[nodiscard]] std::size_t limit() const { return per_client_; }
  /// The total of all clients.
  [[nodiscard]] std::size_t in_use() const { return all_.load(std::memory_order_relaxed); }

 private:
  void release(Counts::iterator place);

  const std::size_t per_client_;
  std::mutex mutex_;
  Counts in_use_;  // no entry is 0
  std::atomic<std::size_t> all_ = 0;
};

}  // namespace sluice

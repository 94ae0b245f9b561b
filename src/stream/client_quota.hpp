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
  struct Count {
    ClientQuota* of;  // so that a unit is one pointer: each stream has one
    std::size_t in_use = 0;
  };
  using Counts = std::map<std::string, Count, std::less<>>;

 public:
  /// One thing that a client has in progress, or nothing. The destructor ends it, and needs no
  /// memory for that. Not thread-safe.
  class Unit {
   public:
    Unit() = default;
    Unit(Unit&& other) noexcept : client_(std::exchange(other.client_, nullptr)) {}
    Unit& operator=(Unit&& other) noexcept {
      std::swap(client_, other.client_);
      return *this;
    }
    ~Unit() { release(); }

    explicit operator bool() const { return client_ != nullptr; }
    void release() {
      if (client_ != nullptr) {
        Counts::value_type& client = *std::exchange(client_, nullptr);
        client.second.of->release(client);
      }
    }

   private:
    friend class ClientQuota;
    explicit Unit(Counts::value_type& client) : client_(&client) {}

    Counts::value_type* client_ = nullptr;
  };

  explicit ClientQuota(std::size_t per_client) : per_client_(per_client) {}
  /// Returns an empty unit if the client has as many as it may.
  [[nodiscard]] Unit take(const std::string& principal);
  [[nodiscard]] std::size_t limit() const { return per_client_; }
  /// The total of all clients.
  [[nodiscard]] std::size_t in_use() const { return all_.load(std::memory_order_relaxed); }

 private:
  void release(Counts::value_type& client);

  const std::size_t per_client_;
  std::mutex mutex_;
  Counts in_use_;  // no entry is 0
  std::atomic<std::size_t> all_ = 0;
};

}  // namespace sluice

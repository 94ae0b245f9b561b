#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/executor.hpp"

namespace sluice {

/// Requests of the legacy era that are under way, by their session and id, so that a
/// notifications/cancelled in a POST of its own finds them on whichever loop they are (2025-11-25,
/// Cancellation). Thread-safe; touched only by requests that are answered later and name a session.
class PendingCalls {
 public:
  /// A request's entry; leaving the scope removes it.
  class Entry {
   public:
    Entry(PendingCalls& calls, std::string key) : calls_(&calls), key_(std::move(key)) {}
    ~Entry() { calls_->remove(key_); }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

   private:
    PendingCalls* calls_;
    std::string key_;
  };

  static std::string key(const std::string& principal, std::string_view session,
                         const std::string& request_id) {
    // Request ids are JSON text and sessions visible ASCII: a newline keeps the parts apart.
    return principal + "\n" + std::string(session) + "\n" + request_id;
  }

  /// `cancel` runs on `loop` when the request is cancelled. Null if there are too many, or there is
  /// one of that key: such a request cannot be cancelled, and is served all the same.
  std::unique_ptr<Entry> add(std::string key, Executor& loop, std::function<void()> cancel) {
    const std::lock_guard lock(mutex_);
    if (calls_.size() >= kMaxCalls || !calls_.try_emplace(key, &loop, std::move(cancel)).second) {
      return nullptr;
    }
    return std::make_unique<Entry>(*this, std::move(key));
  }

  void cancel(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto found = calls_.find(key);
    if (found == calls_.end()) return;
    found->second.first->post([cancel = found->second.second] { cancel(); });
  }

  static constexpr std::size_t kMaxCalls = 100'000;

 private:
  void remove(const std::string& key) {
    const std::lock_guard lock(mutex_);
    calls_.erase(key);
  }

  std::mutex mutex_;
  std::unordered_map<std::string, std::pair<Executor*, std::function<void()>>> calls_;
};

}  // namespace sluice

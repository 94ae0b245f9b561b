#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace sluice {

/// Base of objects that count their own references. The count is thread-safe; what happens when it
/// reaches zero is the derived class's on_unreferenced().
class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  void add_reference() { references_.fetch_add(1, std::memory_order_relaxed); }
  /// Adds a reference unless the last one has been dropped already.
  [[nodiscard]] bool try_add_reference() {
    std::uint32_t count = references_.load(std::memory_order_relaxed);
    while (count != 0) {
      if (references_.compare_exchange_weak(count, count + 1, std::memory_order_acquire))
        return true;
    }
    return false;
  }
  void release_reference() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) on_unreferenced();
  }
  [[nodiscard]] std::uint32_t references() const {
    return references_.load(std::memory_order_acquire);
  }

 protected:
  virtual ~RefCounted() = default;
  virtual void on_unreferenced() { delete this; }

 private:
  std::atomic<std::uint32_t> references_ = 0;
};

/// A counted pointer to a RefCounted.
template <class T>
class RefPtr {
 public:
  RefPtr() = default;
  RefPtr(std::nullptr_t) {}
  explicit RefPtr(T* object) : object_(object) {
    if (object_ != nullptr) object_->add_reference();
  }
  RefPtr(const RefPtr& other) : RefPtr(other.object_) {}
  RefPtr(RefPtr&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <class U>
    requires std::convertible_to<U*, T*>
  RefPtr(const RefPtr<U>& other) : RefPtr(other.get()) {}
  RefPtr& operator=(RefPtr other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~RefPtr() {
    if (object_ != nullptr) object_->release_reference();
  }

  [[nodiscard]] T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  friend bool operator==(const RefPtr&, const RefPtr&) = default;

 private:
  T* object_ = nullptr;
};

}  // namespace sluice

#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace sluice {

template <class Signature>
class UniqueFunction;

/// Like std::move_only_function, but with a size of three words instead of five, because every open
/// stream holds several. A callable of at most two words, such as a pointer with its owner, is
/// stored inside; a larger one is allocated. Must not be called when empty.
template <class Result, class... Arguments>
class UniqueFunction<Result(Arguments...)> {
 public:
  UniqueFunction() = default;
  UniqueFunction(std::nullptr_t) {}  // NOLINT(google-explicit-constructor): as in std
  template <class Callable>
    requires(!std::same_as<std::remove_cvref_t<Callable>, UniqueFunction> &&
             std::is_invocable_r_v<Result, std::decay_t<Callable>&, Arguments...>)
  UniqueFunction(Callable&& callable) {  // NOLINT(google-explicit-constructor): as in std
    using Kept = std::decay_t<Callable>;
    if constexpr (requires { callable == nullptr; }) {
      if (callable == nullptr) return;
    }
    if constexpr (kFits<Kept>) {
      std::construct_at(reinterpret_cast<Kept*>(storage_), std::forward<Callable>(callable));
      ops_ = &kInside<Kept>;
    } else {
      std::construct_at(reinterpret_cast<Kept**>(storage_),
                        new Kept(std::forward<Callable>(callable)));
      ops_ = &kOutside<Kept>;
    }
  }
  UniqueFunction(UniqueFunction&& other) noexcept { take(other); }
  UniqueFunction& operator=(UniqueFunction&& other) noexcept {
    // The previous callable may own `other`, so it is destroyed last.
    UniqueFunction before;
    before.take(*this);
    take(other);
    return *this;
  }
  ~UniqueFunction() {
    if (ops_ != nullptr) ops_->destroy(storage_);
  }

  explicit operator bool() const { return ops_ != nullptr; }
  Result operator()(Arguments... arguments) {
    return ops_->call(storage_, std::forward<Arguments>(arguments)...);
  }

 private:
  struct Ops {
    Result (*call)(std::byte* storage, Arguments&&... arguments);
    void (*move)(std::byte* to, std::byte* from) noexcept;
    void (*destroy)(std::byte* storage) noexcept;
  };

  static constexpr std::size_t kSize = 2 * sizeof(void*);
  template <class Kept>
  static constexpr bool kFits = sizeof(Kept) <= kSize && alignof(Kept) <= alignof(void*) &&
                                std::is_nothrow_move_constructible_v<Kept>;

  template <class Kept>
  static Kept& inside(std::byte* storage) {
    return *std::launder(reinterpret_cast<Kept*>(storage));
  }

  template <class Kept>
  static constexpr Ops kInside{
      .call = [](std::byte* storage, Arguments&&... arguments) -> Result {
        return std::invoke_r<Result>(inside<Kept>(storage), std::forward<Arguments>(arguments)...);
      },
      .move =
          [](std::byte* to, std::byte* from) noexcept {
            std::construct_at(reinterpret_cast<Kept*>(to), std::move(inside<Kept>(from)));
            std::destroy_at(&inside<Kept>(from));
          },
      .destroy = [](std::byte* storage) noexcept { std::destroy_at(&inside<Kept>(storage)); },
  };
  template <class Kept>
  static constexpr Ops kOutside{
      .call = [](std::byte* storage, Arguments&&... arguments) -> Result {
        return std::invoke_r<Result>(*inside<Kept*>(storage),
                                     std::forward<Arguments>(arguments)...);
      },
      .move =
          [](std::byte* to, std::byte* from) noexcept {
            std::construct_at(reinterpret_cast<Kept**>(to), inside<Kept*>(from));
          },
      .destroy = [](std::byte* storage) noexcept { delete inside<Kept*>(storage); },
  };

  /// Requires that this object is empty.
  void take(UniqueFunction& other) noexcept {
    ops_ = std::exchange(other.ops_, nullptr);
    if (ops_ != nullptr) ops_->move(storage_, other.storage_);
  }

  alignas(void*) std::byte storage_[kSize];
  const Ops* ops_ = nullptr;
};

}  // namespace sluice

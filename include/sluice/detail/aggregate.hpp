#pragma once

// Finds the number and the names of an aggregate's members, and the names of an enum's enumerators,
// without macros. Members are counted by trying how many initialisers the aggregate takes. Names
// are cut out of the text that the compiler prints for template arguments.

#include <array>
#include <cstddef>
#include <limits>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include "sluice/detail/compiler.hpp"

namespace sluice::detail {

inline constexpr std::size_t kMaxMembers = 32;

/// An initialiser of any type. The conversion is never evaluated; it has a body because
/// constructors of the standard library refer to it.
struct AnyInitializer {
  template <class T>
  operator T() const noexcept {  // NOLINT(google-explicit-constructor)
    std::unreachable();
  }
};

template <class T, std::size_t... kIndex>
consteval bool takes_initializers(std::index_sequence<kIndex...>) {
  return requires { T{(static_cast<void>(kIndex), AnyInitializer{})...}; };
}

/// The number of initialisers that `T` takes, at most kMaxMembers + 1. An array takes one per item.
template <class T, std::size_t kTry = kMaxMembers + 1>
consteval std::size_t count_initializers() {
  if constexpr (kTry == 0) {
    return 0;
  } else if constexpr (takes_initializers<T>(std::make_index_sequence<kTry>{})) {
    return kTry;
  } else {
    return count_initializers<T, kTry - 1>();
  }
}

/// `kCount`, unless `kMore` says that there are more; then counts in the other way.
template <class T, std::size_t kCount, bool kMore>
consteval std::size_t counted() {
  if constexpr (kMore) {
    return count_initializers<T>();
  } else {
    return kCount;
  }
}

/// The number of elements of `T` (members and base classes), at most kMaxMembers + 1. Counts how
/// many `{}` it takes, which is cheap to compile. `{}` cannot make an element whose default
/// constructor is explicit, so the count may end too early; if an AnyInitializer fits there, those
/// are counted instead.
template <class T>
consteval std::size_t count_elements() {
  // clang-format off
  if constexpr (!requires { T{{}}; }) return counted<T, 0, requires { T{AnyInitializer{}}; }>();
  else if constexpr (!requires { T{{}, {}}; }) return counted<T, 1, requires { T{{}, AnyInitializer{}}; }>();
  else if constexpr (!requires { T{{}, {}, {}}; }) return counted<T, 2, requires { T{{}, {}, AnyInitializer{}}; }>();
  else if constexpr (!requires { T{{}, {}, {}, {}}; }) return counted<T, 3, requires { T{{}, {}, {}, AnyInitializer{}}; }>();
  else if constexpr (!requires { T{{}, {}, {}, {}, {}}; }) return counted<T, 4, requires { T{{}, {}, {}, {}, AnyInitializer{}}; }>();
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}}; }) return counted<T, 5, requires { T{{}, {}, {}, {}, {}, AnyInitializer{}}; }>();
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}}; }) return counted<T, 6, requires { T{{}, {}, {}, {}, {}, {}, AnyInitializer{}}; }>();
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}, {}}; }) return counted<T, 7, requires { T{{}, {}, {}, {}, {}, {}, {}, AnyInitializer{}}; }>();
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}}; }) return counted<T, 8, requires { T{{}, {}, {}, {}, {}, {}, {}, {}, AnyInitializer{}}; }>();
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) return counted<T, 9, requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, AnyInitializer{}}; }>();
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) return counted<T, 10, requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, AnyInitializer{}}; }>();
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) return counted<T, 11, requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, AnyInitializer{}}; }>();
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) return counted<T, 12, requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, AnyInitializer{}}; }>();
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) return counted<T, 13, requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, AnyInitializer{}}; }>();
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) return counted<T, 14, requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, AnyInitializer{}}; }>();
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) return counted<T, 15, requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, AnyInitializer{}}; }>();
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) return counted<T, 16, requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, AnyInitializer{}}; }>();
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) return counted<T, 17, requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, AnyInitializer{}}; }>();
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) return counted<T, 18, requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, AnyInitializer{}}; }>();
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) return counted<T, 19, requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, AnyInitializer{}}; }>();
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) return counted<T, 20, requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, AnyInitializer{}}; }>();
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) return counted<T, 21, requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, AnyInitializer{}}; }>();
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) return counted<T, 22, requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, AnyInitializer{}}; }>();
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) return counted<T, 23, requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, AnyInitializer{}}; }>();
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) return counted<T, 24, requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, AnyInitializer{}}; }>();
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) return counted<T, 25, requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, AnyInitializer{}}; }>();
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) return counted<T, 26, requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, AnyInitializer{}}; }>();
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) return counted<T, 27, requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, AnyInitializer{}}; }>();
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) return counted<T, 28, requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, AnyInitializer{}}; }>();
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) return counted<T, 29, requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, AnyInitializer{}}; }>();
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) return counted<T, 30, requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, AnyInitializer{}}; }>();
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) return counted<T, 31, requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, AnyInitializer{}}; }>();
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) return counted<T, 32, requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, AnyInitializer{}}; }>();
  else return kMaxMembers + 1;
  // clang-format on
}

template <class T>
inline constexpr std::size_t kElements = count_elements<T>();

/// An initialiser of any base class of `T`.
template <class T>
struct BaseInitializer {
  template <class Base>
    requires(std::is_base_of_v<Base, T> && !std::is_same_v<Base, T>)
  operator Base() const noexcept;  // NOLINT(google-explicit-constructor)
};

template <class T>
inline constexpr bool kHasBase = requires { T{BaseInitializer<T>{}}; };

/// The number of members; 0 also if they cannot be counted.
template <class T>
consteval std::size_t count_members() {
  // NOLINTNEXTLINE(bugprone-branch-clone): the first case must not instantiate kHasBase
  if constexpr (kElements<T> > kMaxMembers) {
    return 0;
  } else if constexpr (kHasBase<T>) {
    return 0;
  } else {
    return kElements<T>;
  }
}

/// Calls `use` with references to the members of `object`, in the order of declaration.
template <class T, class Use>
constexpr decltype(auto) with_members(T& object, Use use) {
  constexpr std::size_t kCount = count_members<std::remove_const_t<T>>();
  // clang-format off
  if constexpr (kCount == 0) { static_cast<void>(object); return use(); }
  else if constexpr (kCount == 1) { auto& [m0] = object; return use(m0); }
  else if constexpr (kCount == 2) { auto& [m0, m1] = object; return use(m0, m1); }
  else if constexpr (kCount == 3) { auto& [m0, m1, m2] = object; return use(m0, m1, m2); }
  else if constexpr (kCount == 4) { auto& [m0, m1, m2, m3] = object; return use(m0, m1, m2, m3); }
  else if constexpr (kCount == 5) { auto& [m0, m1, m2, m3, m4] = object; return use(m0, m1, m2, m3, m4); }
  else if constexpr (kCount == 6) { auto& [m0, m1, m2, m3, m4, m5] = object; return use(m0, m1, m2, m3, m4, m5); }
  else if constexpr (kCount == 7) { auto& [m0, m1, m2, m3, m4, m5, m6] = object; return use(m0, m1, m2, m3, m4, m5, m6); }
  else if constexpr (kCount == 8) { auto& [m0, m1, m2, m3, m4, m5, m6, m7] = object; return use(m0, m1, m2, m3, m4, m5, m6, m7); }
  else if constexpr (kCount == 9) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8] = object; return use(m0, m1, m2, m3, m4, m5, m6, m7, m8); }
  else if constexpr (kCount == 10) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9] = object; return use(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9); }
  else if constexpr (kCount == 11) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10] = object; return use(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10); }
  else if constexpr (kCount == 12) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11] = object; return use(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11); }
  else if constexpr (kCount == 13) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12] = object; return use(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12); }
  else if constexpr (kCount == 14) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13] = object; return use(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13); }
  else if constexpr (kCount == 15) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14] = object; return use(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14); }
  else if constexpr (kCount == 16) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15] = object; return use(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15); }
  else if constexpr (kCount == 17) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16] = object; return use(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16); }
  else if constexpr (kCount == 18) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17] = object; return use(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17); }
  else if constexpr (kCount == 19) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18] = object; return use(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18); }
  else if constexpr (kCount == 20) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19] = object; return use(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19); }
  else if constexpr (kCount == 21) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20] = object; return use(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20); }
  else if constexpr (kCount == 22) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21] = object; return use(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21); }
  else if constexpr (kCount == 23) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22] = object; return use(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22); }
  else if constexpr (kCount == 24) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23] = object; return use(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23); }
  else if constexpr (kCount == 25) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24] = object; return use(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24); }
  else if constexpr (kCount == 26) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25] = object; return use(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25); }
  else if constexpr (kCount == 27) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26] = object; return use(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26); }
  else if constexpr (kCount == 28) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27] = object; return use(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27); }
  else if constexpr (kCount == 29) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28] = object; return use(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28); }
  else if constexpr (kCount == 30) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28, m29] = object; return use(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28, m29); }
  else if constexpr (kCount == 31) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28, m29, m30] = object; return use(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28, m29, m30); }
  else if constexpr (kCount == 32) { auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28, m29, m30, m31] = object; return use(m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28, m29, m30, m31); }
  // clang-format on
}

template <class T>
struct ExternalObject {
  T value;
};

#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-internal"
#pragma clang diagnostic ignored "-Wundefined-var-template"
#endif

/// Never defined; its members have names and addresses all the same.
template <class T>
extern const ExternalObject<T> kExternalObject;

/// Pointers of several types; cheaper to compile than a std::tuple of them.
template <std::size_t kIndex, class T>
struct PointerAt {
  T* pointer;
};
template <class Index, class... T>
struct Pointers;
template <std::size_t... kIndex, class... T>
struct Pointers<std::index_sequence<kIndex...>, T...> : PointerAt<kIndex, T>... {};

template <std::size_t kIndex, class T>
constexpr T* pointer_at(const PointerAt<kIndex, T>& at) {
  return at.pointer;
}

/// Pointers to the members of kExternalObject.
template <class T>
inline constexpr auto kMemberPointers = with_members(kExternalObject<T>.value, [](auto&... member) {
  return Pointers<std::make_index_sequence<sizeof...(member)>,
                  std::remove_reference_t<decltype(member)>...>{{std::addressof(member)}...};
});

template <class T, std::size_t kIndex>
using MemberOf = std::remove_cvref_t<decltype(*pointer_at<kIndex>(kMemberPointers<T>))>;

template <auto kValue>
consteval const char* pretty_value() {
  return __PRETTY_FUNCTION__;
}

template <class T, std::size_t kIndex>
consteval const char* pretty_member() {
  return pretty_value<pointer_at<kIndex>(kMemberPointers<T>)>();
}

#if defined(__clang__)
#pragma clang diagnostic pop
#endif

template <class T>
consteval const char* pretty_type() {
  return __PRETTY_FUNCTION__;
}

template <class Enum, Enum... kValues>
consteval std::string_view pretty_enumerators() {
  return __PRETTY_FUNCTION__;
}

constexpr bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

/// The last identifier in `text`.
constexpr std::string_view last_name(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0 && !is_name_character(text[end - 1])) --end;
  std::size_t begin = end;
  while (begin > 0 && is_name_character(text[begin - 1])) --begin;
  return text.substr(begin, end - begin);
}

// The values for which enumerators are found. An enum with other values needs sluice::Describe.

inline constexpr int kMinEnumerator = -16;
inline constexpr int kMaxEnumerator = 127;

/// Whether every value of the underlying type is a value of the enum, so that each can be tried.
template <class T>
concept FixedEnum = std::is_enum_v<T> && requires { T{0}; };

template <class Enum>
struct Enumerator {
  Enum value{};
  std::string_view name;
};

template <class Enum>
struct EnumeratorScan {
  using Number = std::underlying_type_t<Enum>;
  static constexpr int kLow = std::is_signed_v<Number> ? kMinEnumerator : 0;
  static constexpr int kHigh =
      std::numeric_limits<Number>::digits < 7 ? 1 : kMaxEnumerator;  // bool has two values
  static constexpr std::size_t kSize = static_cast<std::size_t>(kHigh - kLow) + 1;

  static constexpr Enum at(std::size_t index) {
    return static_cast<Enum>(static_cast<int>(index) + kLow);
  }

  /// One name per value; empty for a value without an enumerator.
  static consteval std::array<std::string_view, kSize> names() {
    constexpr std::string_view kText = []<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
      return pretty_enumerators<Enum, at(kIndex)...>();
    }(std::make_index_sequence<kSize>{});
    std::array<std::string_view, kSize> names;
    // The text is "... kValues = <(Color)-1, Color::red, ...>", perhaps with "{...}". Values
    // without an enumerator are casts: they end in a number.
    std::size_t at = kText.find("kValues = ") + 11;
    for (std::string_view& name : names) {
      const std::size_t end = kText.find_first_of(",>}", at);
      const std::string_view value = kText.substr(at, end - at);
      // "(" at the beginning does not mean a cast: "(anonymous namespace)::red" is a name.
      const std::string_view last = last_name(value);
      if (last.front() < '0' || last.front() > '9') name = last;
      at = end + 2;
    }
    return names;
  }
};

/// The enumerators from kMinEnumerator to kMaxEnumerator.
template <class Enum>
inline constexpr auto kEnumerators = [] {
  using Scan = EnumeratorScan<Enum>;
  constexpr auto kNames = Scan::names();
  constexpr std::size_t kCount = [&] {
    std::size_t count = 0;
    for (const std::string_view name : kNames) count += name.empty() ? 0 : 1;
    return count;
  }();
  std::array<Enumerator<Enum>, kCount> found;
  std::size_t next = 0;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (!kNames[i].empty()) found[next++] = {Scan::at(i), kNames[i]};
  }
  return found;
}();

}  // namespace sluice::detail

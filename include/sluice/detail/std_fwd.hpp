#pragma once

// Forward declarations of std types that sluice names but does not use. A program that has a value
// of such a type includes its header itself. With libstdc++ the inline namespaces are known, so
// that the types can be declared; with other libraries their headers are included.

#include <cstddef>
#include <type_traits>

#if defined(__GLIBCXX__) && !defined(_GLIBCXX_DEBUG)

// NOLINTBEGIN(readability-identifier-naming): these names are libstdc++'s.
namespace std {
_GLIBCXX_BEGIN_NAMESPACE_VERSION

class stop_token;
struct monostate;
template <class... T>
class variant;
template <size_t kIndex, class Variant>
struct variant_alternative;
template <size_t kIndex, class... T>
constexpr add_pointer_t<const typename variant_alternative<kIndex, variant<T...>>::type> get_if(
    const variant<T...>* value) noexcept;

_GLIBCXX_BEGIN_NAMESPACE_CONTAINER

template <class T, class Allocator>
class deque;
template <class T, class Compare, class Allocator>
class set;
template <class T, class Hash, class Equal, class Allocator>
class unordered_set;
template <class Key, class T, class Hash, class Equal, class Allocator>
class unordered_map;

_GLIBCXX_END_NAMESPACE_CONTAINER

#if _GLIBCXX_USE_CXX11_ABI
inline namespace __cxx11 {  // NOLINT(bugprone-reserved-identifier): where libstdc++ has it
#endif

template <class T, class Allocator>
class list;

#if _GLIBCXX_USE_CXX11_ABI
}  // namespace __cxx11
#endif

_GLIBCXX_END_NAMESPACE_VERSION
}  // namespace std
// NOLINTEND(readability-identifier-naming)

#else

#include <deque>
#include <list>
#include <set>
#include <stop_token>
#include <unordered_map>
#include <unordered_set>
#include <variant>

#endif

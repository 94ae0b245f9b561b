#pragma once

// The JSON form of standard containers, in addition to the types of sluice/codec.hpp:
//
//   std::optional, unique_ptr, shared_ptr         the value inside, or null; an empty member of a
//                                                 struct is left out
//   std::vector, deque, list, array               array
//   std::set, unordered_set                       array of unique items
//   std::pair, tuple                              array of that length
//   std::map, unordered_map                       object; the keys are std::string
//   std::variant                                  the first alternative that fits; std::monostate
//                                                 is null

#include <array>
#include <concepts>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/codec.hpp"
#include "sluice/detail/coding.hpp"
#include "sluice/detail/std_fwd.hpp"
#include "sluice/detail/type.hpp"
#include "sluice/json.hpp"

namespace sluice {

namespace detail {

template <class T>
struct IsNullable : std::false_type {};
template <class T>
struct IsNullable<std::optional<T>> : std::true_type {
  using inside = T;
  static T* emplace(std::optional<T>& out) { return std::addressof(out.emplace()); }
};
template <class T>
struct IsNullable<std::unique_ptr<T>> : std::true_type {
  using inside = T;
  static T* emplace(std::unique_ptr<T>& out) {
    out.reset(new T{});
    return out.get();
  }
};
template <class T>
struct IsNullable<std::shared_ptr<T>> : std::true_type {
  using inside = T;
  static T* emplace(std::shared_ptr<T>& out) {
    out = std::make_shared<T>();
    return out.get();
  }
};
template <class T>
concept Nullable = IsNullable<T>::value;

template <class T>
const void* inside_of(const void* nullable) {
  const T& value = *static_cast<const T*>(nullable);
  return value ? std::addressof(*value) : nullptr;
}
template <class T>
void reset_nullable(void* nullable) {
  static_cast<T*>(nullable)->reset();
}

template <class T>
bool decode_inside_of(void* nullable, const json::value& value, Decoder& decoder) {
  T fresh{};
  void* const inside = IsNullable<T>::emplace(fresh);
  if (!decode_fresh(*type_of<typename IsNullable<T>::inside>(), value, inside, decoder)) {
    return false;
  }
  *static_cast<T*>(nullable) = std::move(fresh);
  return true;
}

/// Whether a new value can be put inside.
template <class T>
inline constexpr bool kIsFillable =
    !std::is_const_v<typename IsNullable<T>::inside> &&
    std::is_default_constructible_v<typename IsNullable<T>::inside> && std::is_move_assignable_v<T>;

template <class T>
constexpr auto decode_inside_or_null() -> bool (*)(void*, const json::value&, Decoder&) {
  if constexpr (kIsFillable<T>) {
    return decode_inside_of<T>;
  } else {
    return nullptr;
  }
}

template <class T>
inline constinit const NullableType kNullableType = {{.schema = nullable_schema,
                                                      .decode = decode_nullable,
                                                      .encode = encode_nullable,
                                                      .size = sizeof(T),
                                                      .kind = Type::Kind::nullable},
                                                     type_of<typename IsNullable<T>::inside>(),
                                                     inside_of<T>,
                                                     reset_nullable<T>,
                                                     decode_inside_or_null<T>()};

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::bool_constant<!std::same_as<T, bool>> {};

template <class T>
const void* items_of(const void* vector, std::size_t& count) {
  const T& value = *static_cast<const T*>(vector);
  count = value.size();
  return value.data();
}
template <class T>
void* resize_vector(void* vector, std::size_t count) {
  T& value = *static_cast<T*>(vector);
  value.resize(count);
  return value.data();
}

template <class T>
constexpr auto resize_or_null() -> void* (*)(void*, std::size_t) {
  if constexpr (std::is_default_constructible_v<typename T::value_type> &&
                std::is_move_constructible_v<typename T::value_type>) {
    return resize_vector<T>;
  } else {
    return nullptr;
  }
}

template <class T>
inline constinit const VectorType kVectorType = {{.schema = vector_schema,
                                                  .decode = decode_vector,
                                                  .encode = encode_vector,
                                                  .encode_initial = encode_empty_array,
                                                  .size = sizeof(T)},
                                                 type_of<typename T::value_type>(),
                                                 items_of<T>,
                                                 resize_or_null<T>()};

template <class T>
struct IsSequence : std::false_type {};
template <class T, class A>
struct IsSequence<std::vector<T, A>> : std::bool_constant<!IsVector<std::vector<T, A>>::value> {};
template <class T, class A>
struct IsSequence<std::deque<T, A>> : std::true_type {};
template <class T, class A>
struct IsSequence<std::list<T, A>> : std::true_type {};

template <class T>
struct IsSet : std::false_type {};
template <class T, class C, class A>
struct IsSet<std::set<T, C, A>> : std::true_type {};
template <class T, class H, class E, class A>
struct IsSet<std::unordered_set<T, H, E, A>> : std::true_type {};

template <class T>
struct IsMap : std::false_type {};
template <class K, class T, class C, class A>
struct IsMap<std::map<K, T, C, A>> : std::true_type {};
template <class K, class T, class H, class E, class A>
struct IsMap<std::unordered_map<K, T, H, E, A>> : std::true_type {};

template <class T>
struct IsArray : std::false_type {};
template <class T, std::size_t kSize>
struct IsArray<std::array<T, kSize>> : std::true_type {};

template <class T>
struct IsTuple : std::false_type {};
template <class... T>
struct IsTuple<std::tuple<T...>> : std::true_type {};
template <class A, class B>
struct IsTuple<std::pair<A, B>> : std::true_type {};

/// Throws std::bad_variant_access.
[[noreturn]] void fail_valueless();

/// The most keys in one bucket of a hash table. Random keys come nowhere near it. Keys that were
/// chosen to collide would make filling the table take quadratic time.
inline constexpr std::size_t kMaxBucket = 64;

/// Fails if too many keys collide with one that was added to `container`, if that is a hash table.
template <class T>
bool check_bucket(const T& container, const typename T::key_type& key, Decoder& decoder) {
  if constexpr (requires { container.bucket_size(container.bucket(key)); }) {
    if (container.bucket_size(container.bucket(key)) > kMaxBucket) {
      return decoder.fail("too many keys have the same hash");
    }
  }
  return true;
}

template <class T>
bool decode_item(const json::array& array, std::size_t index, T& out, Decoder& decoder) {
  return Codec<T>::decode(array[index], out, decoder) || decoder.fail_at(index);
}

}  // namespace detail

template <detail::Nullable T>
struct Codec<T> : detail::TableCodec<T, detail::kNullableType<T>> {
  static consteval bool readable() {
    return detail::kIsFillable<T> &&
           detail::readable_part<typename detail::IsNullable<T>::inside>();
  }
};

template <class T>
  requires detail::IsVector<T>::value
struct Codec<T> : detail::TableCodec<T, detail::kVectorType<T>> {
  static consteval bool readable() { return detail::readable_item<typename T::value_type>(); }
};

template <class T>
  requires(detail::IsSequence<T>::value || detail::IsSet<T>::value)
struct Codec<T> {
  using Item = typename T::value_type;

  static json::value schema(SchemaBuilder& builder) {
    json::object out{{"type", "array"}, {"items", Codec<Item>::schema(builder)}};
    if constexpr (detail::IsSet<T>::value) out["uniqueItems"] = true;
    return out;
  }
  static bool decode(const json::value& value, T& out, Decoder& decoder)
    requires(detail::readable_item<Item>())
  {
    if (!value.is_array()) return decoder.fail_type("array", value);
    const json::array& array = value.get_array();
    if (!decoder.enter(array.size(), sizeof(Item))) return false;
    out.clear();
    for (std::size_t i = 0; i < array.size(); ++i) {
      Item item{};
      if (!detail::decode_item(array, i, item, decoder)) return false;
      if constexpr (detail::IsSet<T>::value) {
        const auto [added, is_new] = out.insert(std::move(item));
        if (!is_new) {
          decoder.fail("is equal to an item before it");
          return decoder.fail_at(i);
        }
        if (!detail::check_bucket(out, *added, decoder)) return false;
      } else {
        out.push_back(std::move(item));
      }
    }
    decoder.leave();
    return true;
  }
  static json::value encode(const T& value, Encoder& encoder) {
    encoder.enter();
    json::array out;
    out.reserve(value.size());
    for (const auto& item : value) out.push_back(Codec<Item>::encode(item, encoder));
    encoder.leave();
    return out;
  }
};

template <class T, std::size_t kSize>
struct Codec<std::array<T, kSize>> {
  static json::value schema(SchemaBuilder& builder) {
    return {{"type", "array"},
            {"items", Codec<T>::schema(builder)},
            {"minItems", kSize},
            {"maxItems", kSize}};
  }
  static bool decode(const json::value& value, std::array<T, kSize>& out, Decoder& decoder)
    requires(detail::readable_part<T>())
  {
    if (!value.is_array()) return decoder.fail_type("array", value);
    const json::array& array = value.get_array();
    if (array.size() != kSize) return decoder.fail_size(kSize, array.size());
    if (!decoder.enter(kSize)) return false;
    for (std::size_t i = 0; i < kSize; ++i) {
      if (!detail::decode_item(array, i, out[i], decoder)) return false;
    }
    decoder.leave();
    return true;
  }
  static json::value encode(const std::array<T, kSize>& value, Encoder& encoder) {
    encoder.enter();
    json::array out;
    for (const T& item : value) out.push_back(Codec<T>::encode(item, encoder));
    encoder.leave();
    return out;
  }
};

template <class T>
  requires detail::IsTuple<T>::value
struct Codec<T> {
  static constexpr std::size_t kSize = std::tuple_size_v<T>;
  static constexpr bool kReadable = []<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    return (detail::readable_part<std::tuple_element_t<kIndex, T>>() && ...);
  }(std::make_index_sequence<kSize>{});

  static json::value schema(SchemaBuilder& builder) {
    json::array items;
    each([&]<std::size_t kIndex>() { items.push_back(Item<kIndex>::schema(builder)); });
    json::object out{{"type", "array"}, {"items", false}, {"minItems", kSize}};
    if (kSize > 0) out["prefixItems"] = std::move(items);
    return out;
  }
  static bool decode(const json::value& value, T& out, Decoder& decoder)
    requires(kReadable)
  {
    if (!value.is_array()) return decoder.fail_type("array", value);
    const json::array& array = value.get_array();
    if (array.size() != kSize) return decoder.fail_size(kSize, array.size());
    if (!decoder.enter()) return false;
    bool good = true;
    each([&]<std::size_t kIndex>() {
      good = good && detail::decode_item(array, kIndex, std::get<kIndex>(out), decoder);
    });
    decoder.leave();
    return good;
  }
  static json::value encode(const T& value, Encoder& encoder) {
    encoder.enter();
    json::array out;
    each([&]<std::size_t kIndex>() {
      out.push_back(Item<kIndex>::encode(std::get<kIndex>(value), encoder));
    });
    encoder.leave();
    return out;
  }

 private:
  template <std::size_t kIndex>
  using Item = Codec<std::tuple_element_t<kIndex, T>>;

  template <class Visit>
  static void each(const Visit& visit) {
    [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
      (visit.template operator()<kIndex>(), ...);
    }(std::make_index_sequence<kSize>{});
  }
};

template <class T>
  requires detail::IsMap<T>::value
struct Codec<T> {
  static_assert(std::same_as<typename T::key_type, std::string>,
                "the keys of a JSON object are text: use std::string as the key type");
  using Value = typename T::mapped_type;

  static json::value schema(SchemaBuilder& builder) {
    return {{"type", "object"}, {"additionalProperties", Codec<Value>::schema(builder)}};
  }
  static bool decode(const json::value& value, T& out, Decoder& decoder)
    requires(detail::readable_item<Value>())
  {
    if (!value.is_object()) return decoder.fail_type("object", value);
    if (!decoder.enter(value.get_object().size(), sizeof(typename T::value_type))) return false;
    out.clear();
    for (const auto& [name, member] : value.get_object()) {
      Value item{};
      if (!Codec<Value>::decode(member, item, decoder)) {
        return decoder.fail_at(std::string_view(name));
      }
      const auto added = out.emplace(name, std::move(item)).first;
      if (!detail::check_bucket(out, added->first, decoder)) return false;
    }
    decoder.leave();
    return true;
  }
  static json::value encode(const T& value, Encoder& encoder) {
    encoder.enter();
    json::object out;
    for (const auto& [name, member] : value) out[name] = Codec<Value>::encode(member, encoder);
    encoder.leave();
    return out;
  }
};

template <class... T>
struct Codec<std::variant<T...>> {
  static json::value schema(SchemaBuilder& builder) {
    return {{"anyOf", json::array{Codec<T>::schema(builder)...}}};
  }
  static bool decode(const json::value& value, std::variant<T...>& out, Decoder& decoder)
    requires((detail::readable_item<T>() && std::is_assignable_v<std::variant<T...>&, T>) && ...)
  {
    Decoder::Alternatives failures;
    return (decode_as<T>(value, out, decoder, failures) || ...) || failures.fail(decoder, value);
  }
  static json::value encode(const std::variant<T...>& value, Encoder& encoder) {
    return encode_at(value, encoder, std::index_sequence_for<T...>());
  }

 private:
  // This does not use std::visit, which is not declared here.
  template <std::size_t... kIndex>
  static json::value encode_at(const std::variant<T...>& value, Encoder& encoder,
                               std::index_sequence<kIndex...>) {
    json::value out;
    const bool found =
        ((kIndex == value.index() &&
          (static_cast<void>(
               out = Codec<T>::encode(*std::get_if<kIndex>(std::addressof(value)), encoder)),
           true)) ||
         ...);
    if (!found) detail::fail_valueless();
    return out;
  }

  template <class Alternative>
  static bool decode_as(const json::value& value, std::variant<T...>& out, Decoder& decoder,
                        Decoder::Alternatives& failures) {
    Decoder own = decoder.alternative();
    Alternative alternative{};
    if (!Codec<Alternative>::decode(value, alternative, own)) {
      failures.add(std::move(own));
      return false;
    }
    out = std::move(alternative);
    return true;
  }
};

}  // namespace sluice

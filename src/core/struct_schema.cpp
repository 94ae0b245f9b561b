// What sluice/schema.hpp needs that depends on no type.

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/json.hpp"
#include "core/json_path.hpp"
#include "core/json_schema_violation.hpp"
#include "sluice/detail/coding.hpp"
#include "sluice/detail/type.hpp"
#include "sluice/schema.hpp"

namespace sluice {
namespace {

/// Notes the `x-mcp-header` names that `properties` alone lead to; lower case, since that is how
/// headers are compared.
void collect_headers(const json::value& schema, std::multiset<std::string>& names) {
  const json::object* const object = schema.if_object();
  if (object == nullptr) return;
  if (const json::value* const name = object->if_contains("x-mcp-header")) {
    std::string lower(name->as_string());
    std::ranges::transform(lower, lower.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    names.insert(std::move(lower));
  }
  const json::value* const properties = object->if_contains("properties");
  if (properties == nullptr) return;
  for (const auto& [name, property] : properties->as_object()) collect_headers(property, names);
}

/// `Point`, for a spelling that says `T = ns::Point` or `T = ns::Point<int>`.
std::string_view type_name_in(std::string_view spelling) {
  spelling.remove_prefix(spelling.find("T = ") + 4);
  return detail::last_name(spelling.substr(0, spelling.find_first_of("<;]")));
}

/// A step that something comes before.
template <class Step>
std::string path_step(Step step) {
  std::string out = "?";
  append_json_path(out, step);
  return out.erase(0, 1);
}

}  // namespace

std::string DecodeError::describe() const {
  return path + ": " + message;
}

struct SchemaBuilder::Definitions {
  struct Definition {
    const void* key = nullptr;
    std::string name;
    bool referred = false;
    json::value schema;
    json::value reference;
  };

  const void* root;
  std::vector<Definition> all = {};  // those at work, and those that are in $defs
  std::vector<std::size_t> at_work = {};
  std::size_t headers = 0;
};

SchemaBuilder::SchemaBuilder(const void* root) : definitions_(new Definitions{.root = root}) {}

SchemaBuilder::~SchemaBuilder() {
  delete definitions_;
}

void SchemaBuilder::count_header() {
  ++definitions_->headers;
}

const json::value* SchemaBuilder::begin(const void* key, std::string_view name) {
  using Definition = Definitions::Definition;
  auto& all = definitions_->all;
  const auto known = std::ranges::find(all, key, &Definition::key);
  if (known != all.end()) {
    known->referred = true;
    return &known->reference;
  }
  std::string unique(name);
  for (int next = 2; std::ranges::find(all, unique, &Definition::name) != all.end(); ++next) {
    unique = std::string(name) + std::to_string(next);
  }
  Definition definition;
  definition.key = key;
  definition.reference = {{"$ref", key == definitions_->root ? "#" : "#/$defs/" + unique}};
  definition.name = std::move(unique);
  definitions_->at_work.push_back(all.size());
  all.push_back(std::move(definition));
  return nullptr;
}

json::value SchemaBuilder::end(json::value schema) {
  const std::size_t at = definitions_->at_work.back();
  definitions_->at_work.pop_back();
  Definitions::Definition& definition = definitions_->all[at];
  if (definition.referred && definition.key != definitions_->root) {
    definition.schema = std::move(schema);
    return definition.reference;
  }
  // Nothing inside refers to it: it may stand in full wherever it is used.
  definition.key = nullptr;
  definition.name.clear();
  return schema;
}

json::value SchemaBuilder::finish(json::value schema) const {
  json::object definitions;
  for (const Definitions::Definition& definition : definitions_->all) {
    if (!definition.schema.is_null()) definitions[definition.name] = definition.schema;
  }
  if (!definitions.empty()) schema.as_object()["$defs"] = std::move(definitions);

  std::multiset<std::string> headers;
  collect_headers(schema, headers);
  if (headers.size() != definitions_->headers) {
    throw std::logic_error(
        "x-mcp-header: a member inside of an array, a map, a variant or a recursive struct cannot "
        "be repeated in a header");
  }
  for (const std::string& name : headers) {
    if (headers.count(name) > 1) {
      throw std::logic_error("x-mcp-header: two members have the name \"" + name + "\"");
    }
  }
  return schema;
}

bool Decoder::fail(std::string message) {
  message_ = std::move(message);
  return false;
}

bool Decoder::fail_type(std::string_view what, const json::value& value) {
  type_ = what;
  return fail(std::string("expected ").append(what).append(", got ").append(type_name(value)));
}

bool Decoder::fail_value(std::string_view what, const json::value& value) {
  return fail(std::string("expected ").append(what).append(", got ") + describe_value(value));
}

bool Decoder::fail_name(std::span<const std::string_view> names, const json::value& value) {
  constexpr std::size_t kMaxListed = 10;
  std::string what = names.size() > 1 ? "one of " : "";
  for (std::size_t i = 0; i < std::min(names.size(), kMaxListed); ++i) {
    if (i != 0) what += ", ";
    what += describe_text(names[i]);
  }
  if (names.size() > kMaxListed) what += ", ...";
  named_ = true;
  return fail_value(what, value);
}

bool Decoder::fail_size(std::size_t count, std::size_t got) {
  return fail("expected " + std::to_string(count) + (count == 1 ? " item" : " items") + ", got " +
              std::to_string(got));
}

bool Decoder::fail_missing(std::string_view member) {
  return fail("missing required property " + describe_text(member));
}

bool Decoder::fail_unknown(const json::object& object, std::span<const std::string_view> members) {
  for (const auto& member : object) {
    const std::string_view name = member.key();
    if (std::ranges::find(members, name) == members.end()) {
      fail("there is no such property");
      return fail_at(name);
    }
  }
  return fail("there is a property too many");
}

bool Decoder::fail_at(std::size_t index) {
  path_.insert(0, path_step(index));
  ++steps_;
  return false;
}

bool Decoder::fail_at(std::string_view name) {
  path_.insert(0, path_step(name));
  ++steps_;
  return false;
}

bool Decoder::enter() {
  if (depth_ >= kMaxJsonDepth) {
    return fail("is more than " + std::to_string(kMaxJsonDepth) + " levels deep");
  }
  ++depth_;
  return true;
}

Decoder Decoder::alternative() const {
  Decoder other(unknown_);
  other.depth_ = depth_;
  return other;
}

DecodeError Decoder::error(std::string_view root) const {
  std::string_view steps = path_;
  if (root.empty() && steps.starts_with('.')) steps.remove_prefix(1);
  return {.path = std::string(root).append(steps), .message = message_};
}

void Decoder::Alternatives::add(Decoder&& failed) {
  // What fails at its type or its name was not meant; what fails further inside was.
  const bool other_type = !failed.type_.empty() && failed.steps_ == 0;
  const bool other_name = failed.named_ && failed.steps_ <= 1;
  const std::size_t closeness = other_type || other_name ? 0 : 1 + failed.steps_;
  only_types_ = only_types_ && other_type;
  if (!failed.type_.empty()) {
    if (!types_.empty()) types_ += " or ";
    types_ += failed.type_;
  }
  ++count_;
  if (rivals_ != 0 && closeness < closeness_) return;
  rivals_ = rivals_ != 0 && closeness == closeness_ ? rivals_ + 1 : 1;
  closeness_ = closeness;
  message_ = std::move(failed.message_);
  path_ = std::move(failed.path_);
  steps_ = failed.steps_;
}

bool Decoder::Alternatives::fail(Decoder& decoder, const json::value& value) {
  if (count_ == 1 || (closeness_ > 0 && rivals_ == 1)) {
    decoder.path_ = std::move(path_);
    decoder.steps_ = steps_;
    return decoder.fail(std::move(message_));
  }
  if (only_types_) return decoder.fail_type(types_, value);
  return decoder.fail("matches none of the " + std::to_string(count_) + " alternatives");
}

void Encoder::enter() {
  if (depth_ >= kMaxJsonDepth) throw std::length_error("a value is too deep for JSON");
  ++depth_;
}

json::value Encoder::number(double value) {
  if (!std::isfinite(value)) throw std::domain_error("JSON has no NaN and no infinity");
  return value;
}

void Encoder::fail_enumerator(std::string_view type, long long number) {
  throw std::domain_error(std::to_string(number).append(" is no enumerator of ").append(type));
}

namespace detail {

namespace {

// How a value of each type is read and written. Integers are accessed with memcpy, since one table
// serves both `long` and `long long`, which may not alias.

template <class T>
T load(const void* value) {
  T out;
  std::memcpy(&out, value, sizeof out);
  return out;
}
template <class T>
void store(void* out, T value) {
  std::memcpy(out, &value, sizeof value);
}

template <class T>
json::value integer_schema(const Type& /*type*/, SchemaBuilder& /*builder*/) {
  using Limits = std::numeric_limits<T>;
  json::object out{{"type", "integer"}};
  constexpr bool kNarrow = sizeof(T) < sizeof(std::int32_t);
  if (kNarrow || std::is_unsigned_v<T>) out["minimum"] = Limits::min();
  if (kNarrow) out["maximum"] = Limits::max();
  return out;
}

template <class T>
bool fail_range(const json::value& value, Decoder& decoder) {
  using Limits = std::numeric_limits<T>;
  return decoder.fail_value(
      "integer from " + std::to_string(Limits::min()) + " to " + std::to_string(Limits::max()),
      value);
}

template <class T>
bool decode_integer(const Type& /*type*/, const json::value& value, void* out, Decoder& decoder) {
  using Limits = std::numeric_limits<T>;
  if (value.is_int64()) {
    if (!std::in_range<T>(value.get_int64())) return fail_range<T>(value, decoder);
    store(out, static_cast<T>(value.get_int64()));
    return true;
  }
  if (!value.is_number()) return decoder.fail_type("integer", value);
  if (value.is_uint64()) {
    if (!std::in_range<T>(value.get_uint64())) return fail_range<T>(value, decoder);
    store(out, static_cast<T>(value.get_uint64()));
    return true;
  }
  const double number = value.get_double();
  if (number != std::trunc(number)) return decoder.fail_value("integer", value);
  // Both bounds are powers of two, and so exact.
  constexpr double kLow = static_cast<double>(Limits::min());
  const double above = std::ldexp(1.0, Limits::digits);
  if (!(number >= kLow && number < above)) return fail_range<T>(value, decoder);
  store(out, static_cast<T>(number));
  return true;
}

template <class T>
json::value encode_integer(const Type& /*type*/, const void* value, Encoder& /*encoder*/) {
  return load<T>(value);
}

template <class T>
constexpr Type integer_type() {
  return {.schema = integer_schema<T>,
          .decode = decode_integer<T>,
          .encode = encode_integer<T>,
          .size = sizeof(T),
          .is_signed = std::is_signed_v<T>};
}

json::value bool_schema(const Type& /*type*/, SchemaBuilder& /*builder*/) {
  return {{"type", "boolean"}};
}
bool decode_bool(const Type& /*type*/, const json::value& value, void* out, Decoder& decoder) {
  if (!value.is_bool()) return decoder.fail_type("boolean", value);
  *static_cast<bool*>(out) = value.get_bool();
  return true;
}
json::value encode_bool(const Type& /*type*/, const void* value, Encoder& /*encoder*/) {
  return *static_cast<const bool*>(value);
}

template <class T>
bool decode_number(const json::value& value, T& out, Decoder& decoder) {
  if (!value.is_number()) return decoder.fail_type("number", value);
  out = value.to_number<T>();
  return std::isfinite(out) ||
         decoder.fail("expected number, got one that is too large to be stored");
}

json::value number_schema(const Type& /*type*/, SchemaBuilder& /*builder*/) {
  return {{"type", "number"}};
}
template <class T>
bool decode_floating(const Type& /*type*/, const json::value& value, void* out, Decoder& decoder) {
  return decode_number(value, *static_cast<T*>(out), decoder);
}
template <class T>
json::value encode_floating(const Type& /*type*/, const void* value, Encoder& /*encoder*/) {
  return Encoder::number(static_cast<double>(*static_cast<const T*>(value)));
}

json::value string_schema(const Type& /*type*/, SchemaBuilder& /*builder*/) {
  return {{"type", "string"}};
}
bool decode_string(const Type& /*type*/, const json::value& value, void* out, Decoder& decoder) {
  if (!value.is_string()) return decoder.fail_type("string", value);
  static_cast<std::string*>(out)->assign(value.get_string().data(), value.get_string().size());
  return true;
}
json::value encode_string(const Type& /*type*/, const void* value, Encoder& /*encoder*/) {
  return json::string(*static_cast<const std::string*>(value));
}
json::value encode_empty_string(Encoder& /*encoder*/) {
  return json::string();
}

template <class T>
json::value encode_json(const Type& /*type*/, const void* value, Encoder& /*encoder*/) {
  return *static_cast<const T*>(value);
}
template <class T>
json::value encode_initial_json(Encoder& /*encoder*/) {
  return T();
}

json::value json_value_schema(const Type& /*type*/, SchemaBuilder& /*builder*/) {
  return json::object();
}
bool decode_json_value(const Type& /*type*/, const json::value& value, void* out,
                       Decoder& /*decoder*/) {
  *static_cast<json::value*>(out) = value;
  return true;
}

json::value json_object_schema(const Type& /*type*/, SchemaBuilder& /*builder*/) {
  return {{"type", "object"}};
}
bool decode_json_object(const Type& /*type*/, const json::value& value, void* out,
                        Decoder& decoder) {
  if (!value.is_object()) return decoder.fail_type("object", value);
  *static_cast<json::object*>(out) = value.get_object();
  return true;
}

json::value json_array_schema(const Type& /*type*/, SchemaBuilder& /*builder*/) {
  return {{"type", "array"}};
}
bool decode_json_array(const Type& /*type*/, const json::value& value, void* out,
                       Decoder& decoder) {
  if (!value.is_array()) return decoder.fail_type("array", value);
  *static_cast<json::array*>(out) = value.get_array();
  return true;
}

}  // namespace

constinit const Type kIntegerTypes[8] = {
    integer_type<std::int8_t>(),   integer_type<std::int16_t>(),  integer_type<std::int32_t>(),
    integer_type<std::int64_t>(),  integer_type<std::uint8_t>(),  integer_type<std::uint16_t>(),
    integer_type<std::uint32_t>(), integer_type<std::uint64_t>(),
};
constinit const Type kBoolType = {
    .schema = bool_schema, .decode = decode_bool, .encode = encode_bool, .size = sizeof(bool)};
constinit const Type kFloatType = {.schema = number_schema,
                                   .decode = decode_floating<float>,
                                   .encode = encode_floating<float>,
                                   .size = sizeof(float)};
constinit const Type kDoubleType = {.schema = number_schema,
                                    .decode = decode_floating<double>,
                                    .encode = encode_floating<double>,
                                    .size = sizeof(double)};
constinit const Type kStringType = {.schema = string_schema,
                                    .decode = decode_string,
                                    .encode = encode_string,
                                    .encode_initial = encode_empty_string,
                                    .size = sizeof(std::string)};
constinit const Type kJsonValueType = {.schema = json_value_schema,
                                       .decode = decode_json_value,
                                       .encode = encode_json<json::value>,
                                       .encode_initial = encode_initial_json<json::value>,
                                       .size = sizeof(json::value)};
constinit const Type kJsonObjectType = {.schema = json_object_schema,
                                        .decode = decode_json_object,
                                        .encode = encode_json<json::object>,
                                        .encode_initial = encode_initial_json<json::object>,
                                        .size = sizeof(json::object)};
constinit const Type kJsonArrayType = {.schema = json_array_schema,
                                       .decode = decode_json_array,
                                       .encode = encode_json<json::array>,
                                       .encode_initial = encode_initial_json<json::array>,
                                       .size = sizeof(json::array)};

bool decode_long_double(const json::value& value, long double& out, Decoder& decoder) {
  return decode_number(value, out, decoder);
}

json::value literal_schema(std::string_view text) {
  return {{"type", "string"}, {"const", text}};
}

bool decode_literal(const json::value& value, std::string_view text, Decoder& decoder) {
  return (value.is_string() && std::string_view(value.get_string()) == text) ||
         decoder.fail_name({&text, 1}, value);
}

namespace {

bool decode_struct_members(const StructType& type, const json::object& object, void* out,
                           Decoder& decoder);

[[noreturn]] void fail_unreadable() {
  throw std::logic_error("decoding into a type that can only be encoded");
}

bool decode_inside(const NullableType& type, const json::value& value, void* out,
                   Decoder& decoder) {
  if (type.decode_inside == nullptr) fail_unreadable();
  return type.decode_inside(out, value, decoder);
}

}  // namespace

bool decode_unreadable(const Type& /*type*/, const json::value& /*value*/, void* /*out*/,
                       Decoder& /*decoder*/) {
  fail_unreadable();
}

void fail_valueless() {
  throw std::bad_variant_access();
}

bool decode_fresh(const Type& type, const json::value& value, void* out, Decoder& decoder) {
  if (type.kind != Type::Kind::structure || !value.is_object()) {
    return type.decode(type, value, out, decoder);
  }
  return decode_struct_members(static_cast<const StructType&>(type), value.get_object(), out,
                               decoder);
}

json::value nullable_schema(const Type& type, SchemaBuilder& builder) {
  const Type& inside = *static_cast<const NullableType&>(type).inside;
  return {{"anyOf", json::array{inside.schema(inside, builder), json::object{{"type", "null"}}}}};
}

bool decode_nullable(const Type& type, const json::value& value, void* out, Decoder& decoder) {
  const auto& nullable = static_cast<const NullableType&>(type);
  if (!value.is_null()) return decode_inside(nullable, value, out, decoder);
  nullable.reset(out);
  return true;
}

json::value encode_nullable(const Type& type, const void* value, Encoder& encoder) {
  const auto& nullable = static_cast<const NullableType&>(type);
  const void* const inside = nullable.get(value);
  if (inside == nullptr) return nullptr;
  return nullable.inside->encode(*nullable.inside, inside, encoder);
}

json::value vector_schema(const Type& type, SchemaBuilder& builder) {
  const Type& item = *static_cast<const VectorType&>(type).item;
  return {{"type", "array"}, {"items", item.schema(item, builder)}};
}

bool decode_vector(const Type& type, const json::value& value, void* out, Decoder& decoder) {
  if (!value.is_array()) return decoder.fail_type("array", value);
  if (!decoder.enter()) return false;
  const auto& vector = static_cast<const VectorType&>(type);
  if (vector.resize == nullptr) fail_unreadable();
  const json::array& array = value.get_array();
  auto* items = static_cast<std::byte*>(vector.resize(out, 0));
  // Grown step by step while items decode, so that a small bad message cannot force a large
  // allocation.
  constexpr std::size_t kFirstSize = 16;
  std::size_t size = 0;
  for (std::size_t i = 0; i < array.size(); ++i) {
    if (i == size) {
      size = std::min(array.size(), std::max(2 * size, kFirstSize));
      items = static_cast<std::byte*>(vector.resize(out, size));
    }
    if (!decode_fresh(*vector.item, array[i], items + i * vector.item->size, decoder)) {
      vector.resize(out, i);
      return decoder.fail_at(i);
    }
  }
  decoder.leave();
  return true;
}

json::value encode_vector(const Type& type, const void* value, Encoder& encoder) {
  encoder.enter();
  const auto& vector = static_cast<const VectorType&>(type);
  std::size_t count = 0;
  const auto* items = static_cast<const std::byte*>(vector.items(value, count));
  json::array out;
  out.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    out.push_back(vector.item->encode(*vector.item, items + i * vector.item->size, encoder));
  }
  encoder.leave();
  return out;
}

json::value encode_empty_array(Encoder& /*encoder*/) {
  return json::array();
}

json::value enum_schema(const Type& type, SchemaBuilder& /*builder*/) {
  const auto& self = static_cast<const EnumType&>(type);
  json::array names;
  for (const std::string_view name : std::span(self.names, self.count)) names.emplace_back(name);
  return {{"type", "string"}, {"enum", std::move(names)}};
}

bool decode_enum(const Type& type, const json::value& value, void* out, Decoder& decoder) {
  const auto& self = static_cast<const EnumType&>(type);
  const std::span names(self.names, self.count);
  if (value.is_string()) {
    const auto found = std::ranges::find(names, std::string_view(value.get_string()));
    if (found != names.end()) {
      const auto index = static_cast<std::size_t>(found - names.begin());
      std::memcpy(out, static_cast<const std::byte*>(self.values) + index * type.size, type.size);
      return true;
    }
  }
  return decoder.fail_name(names, value);
}

json::value encode_enum(const Type& type, const void* value, Encoder& encoder) {
  const auto& self = static_cast<const EnumType&>(type);
  for (std::size_t i = 0; i < self.count; ++i) {
    const std::byte* const known = static_cast<const std::byte*>(self.values) + i * type.size;
    if (std::memcmp(known, value, type.size) == 0) return json::string(self.names[i]);
  }
  const Type& number = kIntegerTypes[std::countr_zero(type.size) + (type.is_signed ? 0 : 4)];
  const json::value shown = number.encode(number, value, encoder);
  Encoder::fail_enumerator(
      type_name_in(self.spelling),
      shown.is_int64() ? shown.get_int64() : static_cast<long long>(shown.get_uint64()));
}

/// What decoding alone needs. Found out later than the layout, since it takes a `T{}` and the
/// description, both of which may encode a `T`.
struct StructOptions {
  bool open = false;
  std::vector<bool> optional;  // for each member
};

struct StructLayout {
  struct Slot {
    std::string_view name;
    std::size_t offset = 0;
    const Type* type = nullptr;
  };

  std::vector<Slot> slots;
  std::vector<std::string_view> names;
  mutable std::atomic<const StructOptions*> options = nullptr;
};

namespace {

/// Calls `use` with a `T{}`.
template <class Use>
void visit_initial(const StructType& type, Use use) {
  type.visit_initial(
      [](void* context, const void* object) { (*static_cast<Use*>(context))(object); }, &use);
}

std::vector<const void*> members_of(const StructType& type, const void* object) {
  std::vector<const void*> out(type.count);
  type.find_members(object, out.data());
  return out;
}

StructDescription description_of(const StructType& type) {
  return type.describe != nullptr ? type.describe() : StructDescription({}, {});
}

json::value encode_initial(const Type& type, Encoder& encoder) {
  if (type.encode_initial != nullptr) return type.encode_initial(encoder);
  if (type.kind == Type::Kind::structure) {
    json::value out;
    visit_initial(static_cast<const StructType&>(type),
                  [&](const void* object) { out = type.encode(type, object, encoder); });
    return out;
  }
  constexpr std::uint64_t kZero = 0;
  return type.encode(type, &kZero, encoder);
}

bool is_zero(const Type& type, const void* value) {
  constexpr std::uint64_t kZero = 0;
  return std::memcmp(value, &kZero, type.size) == 0;
}

/// What its initialiser says about a member: its value in JSON, unless that is what it would be
/// without an initialiser.
std::optional<json::value> preset_of(const Type& type, const void* member) {
  Encoder encoder;
  if (type.kind == Type::Kind::nullable) {
    if (static_cast<const NullableType&>(type).get(member) == nullptr) return std::nullopt;
    return type.encode(type, member, encoder);
  }
  if (type.kind == Type::Kind::enumeration) {
    if (is_zero(type, member)) return std::nullopt;  // 0 need not be an enumerator
    return type.encode(type, member, encoder);
  }
  json::value value = type.encode(type, member, encoder);
  if (type.has_initial && value == encode_initial(type, encoder)) return std::nullopt;
  return value;
}

bool is_optional(const Type& type, const MemberDescription* described, const void* member) {
  return type.kind == Type::Kind::nullable || (described != nullptr && described->optional) ||
         preset_of(type, member).has_value();
}

/// What `known` points to, which is made once and kept as long as the program runs.
template <class T, class Make>
const T& known_or_made(std::atomic<const T*>& known, const Make& make) {
  const T* found = known.load(std::memory_order_acquire);
  if (found != nullptr) return *found;
  std::unique_ptr<const T> made = make();
  if (known.compare_exchange_strong(found, made.get(), std::memory_order_acq_rel)) {
    return *made.release();
  }
  return *found;
}

/// `object` is any one of its type.
const StructLayout& layout_of(const StructType& type, const void* object) {
  return known_or_made(*type.layout, [&] {
    auto out = std::make_unique<StructLayout>();
    const std::vector<const void*> members = members_of(type, object);
    for (std::size_t i = 0; i < type.count; ++i) {
      const Member& member = type.members[i];
      const std::string_view name = last_name(member.spelling);
      out->names.push_back(name);
      out->slots.push_back(
          {.name = name,
           .offset = static_cast<std::size_t>(static_cast<const std::byte*>(members[i]) -
                                              static_cast<const std::byte*>(object)),
           .type = member.type});
    }
    return out;
  });
}

const StructOptions& options_of(const StructType& type, const StructLayout& layout) {
  return known_or_made(layout.options, [&] {
    auto out = std::make_unique<StructOptions>();
    const StructDescription description = description_of(type);
    out->open = description.is_open();
    visit_initial(type, [&](const void* initial) {
      for (const StructLayout::Slot& slot : layout.slots) {
        out->optional.push_back(is_optional(*slot.type, description.find(slot.name),
                                            static_cast<const std::byte*>(initial) + slot.offset));
      }
    });
    return out;
  });
}

bool decode_struct_members(const StructType& type, const json::object& object, void* out,
                           Decoder& decoder) {
  if (!decoder.enter()) return false;
  if (type.reset == nullptr) fail_unreadable();
  const StructLayout& layout = layout_of(type, out);
  const StructOptions& options = options_of(type, layout);
  std::size_t found = 0;
  for (std::size_t i = 0; i < layout.slots.size(); ++i) {
    const StructLayout::Slot& slot = layout.slots[i];
    const json::value* const value = object.if_contains(slot.name);
    if (value == nullptr) {
      if (!options.optional[i]) return decoder.fail_missing(slot.name);
      continue;
    }
    ++found;
    void* const member = static_cast<std::byte*>(out) + slot.offset;
    const bool good =
        slot.type->kind == Type::Kind::nullable
            ? decode_inside(static_cast<const NullableType&>(*slot.type), *value, member, decoder)
            : slot.type->decode(*slot.type, *value, member, decoder);
    if (!good) return decoder.fail_at(slot.name);
  }
  if (found != object.size() && !options.open && !decoder.ignores_unknown_members()) {
    return decoder.fail_unknown(object, layout.names);
  }
  decoder.leave();
  return true;
}

/// The schema of a property; `preset` is its `default`, null if there is none.
json::value property_schema(const Type& type, const MemberDescription* described,
                            const std::optional<json::value>& preset, SchemaBuilder& builder) {
  const Type& shown =
      type.kind == Type::Kind::nullable ? *static_cast<const NullableType&>(type).inside : type;
  json::value schema = shown.schema(shown, builder);
  json::object& out = schema.as_object();
  if (described != nullptr) {
    for (const auto& [keyword, value] : described->attributes) out[keyword] = value;
    if (described->header) builder.count_header();
  }
  if (preset) out["default"] = *preset;
  return schema;
}

json::value make_struct_schema(const StructType& type, SchemaBuilder& builder) {
  const StructDescription description = description_of(type);
  json::object properties;
  json::array required;
  visit_initial(type, [&](const void* initial) {
    const std::vector<const void*> members = members_of(type, initial);
    for (std::size_t i = 0; i < type.count; ++i) {
      const Type& member = *type.members[i].type;
      const std::string_view name = last_name(type.members[i].spelling);
      const MemberDescription* const described = description.find(name);
      std::optional<json::value> preset = preset_of(member, members[i]);
      const bool nullable = member.kind == Type::Kind::nullable;
      const bool said_optional = described != nullptr && described->optional;
      if (!nullable && !said_optional && !preset) required.emplace_back(name);
      // optional() makes a preset of what looks like none.
      if (!nullable && said_optional && !preset) {
        Encoder encoder;
        preset = member.encode(member, members[i], encoder);
      }
      properties[name] = property_schema(member, described, preset, builder);
    }
  });
  json::object out{{"type", "object"}};
  if (!description.description().empty()) out["description"] = description.description();
  out["properties"] = std::move(properties);
  if (!required.empty()) out["required"] = std::move(required);
  if (!description.is_open()) out["additionalProperties"] = false;
  return out;
}

}  // namespace

json::value struct_schema(const Type& type, SchemaBuilder& builder) {
  const auto& self = static_cast<const StructType&>(type);
  return builder.define(&type, type_name_in(self.spelling),
                        [&] { return make_struct_schema(self, builder); });
}

bool decode_struct(const Type& type, const json::value& value, void* out, Decoder& decoder) {
  if (!value.is_object()) return decoder.fail_type("object", value);
  const auto& self = static_cast<const StructType&>(type);
  self.reset(out);
  return decode_struct_members(self, value.get_object(), out, decoder);
}

json::value encode_struct(const Type& type, const void* value, Encoder& encoder) {
  encoder.enter();
  const StructLayout& layout = layout_of(static_cast<const StructType&>(type), value);
  json::object out;
  out.reserve(layout.slots.size());
  for (const StructLayout::Slot& slot : layout.slots) {
    const void* const member = static_cast<const std::byte*>(value) + slot.offset;
    if (slot.type->kind == Type::Kind::nullable &&
        static_cast<const NullableType*>(slot.type)->get(member) == nullptr) {
      continue;
    }
    out.emplace(slot.name, slot.type->encode(*slot.type, member, encoder));
  }
  encoder.leave();
  return out;
}

json::value schema_of(const Type& type) {
  SchemaBuilder builder(&type);
  json::value schema = type.schema(type, builder);
  return builder.finish(std::move(schema));
}

bool decode(const Type& type, const json::value& value, void* out, std::string_view root,
            UnknownMembers unknown, DecodeError& error) {
  Decoder decoder(unknown);
  if (decode_fresh(type, value, out, decoder)) return true;
  error = decoder.error(root);
  return false;
}

bool decode(const Type& type, const json::object& object, void* out, std::string_view root,
            UnknownMembers unknown, DecodeError& error) {
  if (type.kind != Type::Kind::structure) {
    return decode(type, json::value(object), out, root, unknown, error);
  }
  Decoder decoder(unknown);
  if (decode_struct_members(static_cast<const StructType&>(type), object, out, decoder)) {
    return true;
  }
  error = decoder.error(root);
  return false;
}

json::value encode(const Type& type, const void* value) {
  Encoder encoder;
  return type.encode(type, value, encoder);
}

FieldBase::FieldBase(const char* spelling, std::string_view description) {
  said_.member = last_name(spelling);
  if (!description.empty()) said_.attributes["description"] = description;
}
FieldBase::FieldBase(const FieldBase& other) = default;
FieldBase::FieldBase(FieldBase&& other) noexcept = default;
FieldBase::~FieldBase() = default;

void FieldBase::set(std::string_view name, json::value&& value) {
  said_.attributes[name] = std::move(value);
}
void FieldBase::set_text(std::string_view name, std::string_view value) {
  said_.attributes[name] = value;
}
void FieldBase::set_number(std::string_view name, std::int64_t value) {
  said_.attributes[name] = value;
}
void FieldBase::set_number(std::string_view name, std::uint64_t value) {
  said_.attributes[name] = value;
}
void FieldBase::set_number(std::string_view name, double value) {
  said_.attributes[name] = value;
}
void FieldBase::set_true(std::string_view name) {
  said_.attributes[name] = true;
}
void FieldBase::set_examples(std::initializer_list<json::value_ref> values) {
  said_.attributes["examples"] = json::array(values);
}
void FieldBase::set_header(std::string_view name) {
  said_.header = true;
  set_text("x-mcp-header", name);
}

}  // namespace detail

StructDescription::StructDescription(std::string_view description,
                                     std::initializer_list<const detail::FieldBase*> fields)
    : description_(description) {
  members_.reserve(fields.size());
  for (const detail::FieldBase* const field : fields) members_.push_back(field->said());
}
StructDescription::StructDescription(const StructDescription& other) = default;
StructDescription::StructDescription(StructDescription&& other) noexcept = default;
StructDescription& StructDescription::operator=(const StructDescription& other) = default;
StructDescription& StructDescription::operator=(StructDescription&& other) noexcept = default;
StructDescription::~StructDescription() = default;

StructDescription StructDescription::open() && {
  open_ = true;
  return std::move(*this);
}

const detail::MemberDescription* StructDescription::find(std::string_view member) const {
  const auto found = std::ranges::find(members_, member, &detail::MemberDescription::member);
  return found == members_.end() ? nullptr : &*found;
}

}  // namespace sluice

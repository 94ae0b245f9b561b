#include "json/json.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/string.hpp>

#include "core/text/utf8.hpp"
#include "json/parser.hpp"

namespace sluice {
namespace {

constexpr int kParseError = -32700;

/// JSON has no word for infinity or NaN; like JavaScript, null stands for them.
void append_double(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out.append("null");
    return;
  }
  std::array<char, 32> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  out.append(digits.data(), end);
}

}  // namespace

void append_json(std::string& out, const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      out.append("null");
      return;
    case json::kind::bool_:
      out.append(value.get_bool() ? "true" : "false");
      return;
    case json::kind::int64:
      append_number(out, value.get_int64());
      return;
    case json::kind::uint64:
      append_number(out, value.get_uint64());
      return;
    case json::kind::double_:
      append_double(out, value.get_double());
      return;
    case json::kind::string:
      append_json_string(out, value.get_string());
      return;
    case json::kind::array: {
      char before = '[';
      for (const json::value& element : value.get_array()) {
        out.push_back(std::exchange(before, ','));
        append_json(out, element);
      }
      out.append(before == '[' ? "[]" : "]");
      return;
    }
    case json::kind::object:
      append_json(out, value.get_object());
      return;
  }
}

void append_json(std::string& out, const json::object& object) {
  char before = '{';
  for (const auto& [key, member] : object) {
    out.push_back(std::exchange(before, ','));
    append_json_string(out, key);
    out.push_back(':');
    append_json(out, member);
  }
  out.append(before == '{' ? "{}" : "}");
}

std::string to_json(const json::value& value) {
  std::string out;
  append_json(out, value);
  return out;
}

std::string to_json(const json::object& object) {
  std::string out;
  append_json(out, object);
  return out;
}

void put_on_one_line(std::string& text) {
  // In JSON text, a line break is white space between tokens.
  std::ranges::replace_if(text, [](char c) { return c == '\n' || c == '\r'; }, ' ');
}

Result<std::string> one_line_json(std::string_view text) {
  Result<json::value> value = parse_json(text);
  if (!value) return std::unexpected(std::move(value.error()));
  if (is_deeper_than(*value, kMaxNestedDepth)) {
    return fail(kParseError,
                "the value is nested in more than " + std::to_string(kMaxNestedDepth) + " levels");
  }
  std::string line(text);
  put_on_one_line(line);
  return line;
}

std::optional<std::int64_t> exact_integer(double number) {
  static constexpr double kBound = 0x1p53;
  if (!(std::abs(number) < kBound) || number != std::trunc(number)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

void append_json_error(std::string& out, const Error& error) {
  out.append(R"({"code":)");
  append_number(out, error.code);
  out.append(R"(,"message":)");
  append_json_string(out, error.message);
  if (!error.data.empty()) {
    out.append(R"(,"data":)");
    const Result<std::string> data = one_line_json(error.data);
    out.append(data ? *data : to_json_string(error.data));
  }
  out.push_back('}');
}

bool is_longer_than(const json::value& value, std::size_t bytes) {
  // A value takes at least one byte. A container takes two, plus a comma between values, plus two
  // quotes and a colon for each name.
  std::size_t least = 0;
  std::vector<const json::value*> left = {&value};
  while (!left.empty()) {
    const json::value& next = *left.back();
    left.pop_back();
    least += 1;
    if (const json::string* text = next.if_string()) {
      least += 1 + text->size();
    } else if (const json::array* array = next.if_array()) {
      least += array->empty() ? 1 : array->size();
      if (least > bytes) return true;
      for (const json::value& each : *array) left.push_back(&each);
    } else if (const json::object* object = next.if_object()) {
      least += object->empty() ? 1 : 4 * object->size();
      if (least > bytes) return true;
      for (const auto& [key, member] : *object) {
        least += key.size();
        left.push_back(&member);
      }
    }
    if (least > bytes) return true;
  }
  return false;
}

namespace {

/// Counts values without recursion.
class SizeCount {
 public:
  explicit SizeCount(std::size_t max_values) : max_values_(max_values) {}

  void add(const json::value& value) { left_.push_back(&value); }
  void add(const json::object& object) {
    ++size_.values;
    add_members(object);
  }
  JsonSize finish() {
    while (!left_.empty() && size_.values <= max_values_) {
      const json::value& next = *left_.back();
      left_.pop_back();
      ++size_.values;
      if (const json::string* text = next.if_string()) {
        size_.bytes += text->size();
      } else if (const json::array* array = next.if_array()) {
        if (size_.values + array->size() > max_values_) return {.values = max_values_ + 1};
        for (const json::value& each : *array) left_.push_back(&each);
      } else if (const json::object* object = next.if_object()) {
        add_members(*object);
      }
    }
    return size_;
  }

 private:
  void add_members(const json::object& object) {
    size_.values += object.size();
    if (size_.values > max_values_) return;
    for (const auto& [key, member] : object) {
      size_.bytes += key.size();
      left_.push_back(&member);
    }
  }

  std::size_t max_values_;
  JsonSize size_;
  std::vector<const json::value*> left_;
};

}  // namespace

JsonSize size_of(const json::value& value, std::size_t max_values) {
  SizeCount count(max_values);
  count.add(value);
  return count.finish();
}

JsonSize size_of(const json::object& object, std::size_t max_values) {
  SizeCount count(max_values);
  count.add(object);
  return count.finish();
}

bool is_deeper_than(const json::value& value, std::size_t levels) {
  struct Container {
    const json::value* value;
    std::size_t level;
  };
  std::vector<Container> left;
  const auto add = [&left](const json::value& next, std::size_t level) {
    if (next.is_structured()) left.push_back({&next, level});
  };
  add(value, 1);
  while (!left.empty()) {
    const auto [next, level] = left.back();
    left.pop_back();
    if (level > levels) return true;
    if (const json::array* const array = next->if_array()) {
      for (const json::value& each : *array) add(each, level + 1);
    } else {
      for (const auto& [key, member] : next->get_object()) add(member, level + 1);
    }
  }
  return false;
}

Result<json::value> parse_json(std::string_view text, json::storage_ptr storage) {
  std::expected<json::value, JsonSyntaxError> value = JsonParser().parse(text, std::move(storage));
  if (value) return *std::move(value);
  return fail(kParseError, "Parse error: " + value.error().reason + " at byte " +
                               std::to_string(value.error().at) + " of the JSON text");
}

namespace {

template <class Integer>
bool is_same_number(Integer integer, double real) {
  // The first number beyond the integers is a power of two, which a double holds.
  const double end = std::ldexp(1.0, std::numeric_limits<Integer>::digits);
  const double begin = std::is_signed_v<Integer> ? -end : 0;
  return real >= begin && real < end && std::trunc(real) == real &&
         static_cast<Integer>(real) == integer;
}

bool is_same_number(const json::value& whole, double real) {
  return whole.is_int64() ? is_same_number(whole.get_int64(), real)
                          : is_same_number(whole.get_uint64(), real);
}

}  // namespace

bool is_same_value(const json::object& one, const json::object& other) {
  return one.size() == other.size() && std::ranges::all_of(one, [&other](const auto& each) {
           const json::value* const same = other.if_contains(each.key());
           return same != nullptr && is_same_value(each.value(), *same);
         });
}

bool is_same_value(const json::value& one, const json::value& other) {
  if (one.is_object() && other.is_object()) {
    return is_same_value(one.get_object(), other.get_object());
  }
  if (one.is_array() && other.is_array()) {
    return std::ranges::equal(
        one.get_array(), other.get_array(),
        [](const json::value& each, const json::value& same) { return is_same_value(each, same); });
  }
  if (!one.is_number() || !other.is_number() || one.is_double() == other.is_double()) {
    return one == other;
  }
  return one.is_double() ? is_same_number(other, one.get_double())
                         : is_same_number(one, other.get_double());
}

bool is_same_json(std::string_view one, std::string_view other) {
  if (one == other) return true;
  const Result<json::value> first = parse_json(one);
  const Result<json::value> second = parse_json(other);
  return first && second && is_same_value(*first, *second);
}

}  // namespace sluice

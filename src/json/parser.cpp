#include "json/parser.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/value_stack.hpp>

#include "core/text/text.hpp"

namespace sluice {
namespace {

using boost::system::error_code;

/// The double that is nearest to the JSON number `text`. `estimate` is Boost.JSON's own result. It
/// may be wrong in its last bits and is NaN for 0e400, so it is only used to tell whether a number
/// is out of range because it is too large or too small.
double to_double(std::string_view text, double estimate) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc::result_out_of_range) return value;
  value = std::abs(estimate) > 1 ? std::numeric_limits<double>::infinity() : 0;
  return text.starts_with('-') ? -value : value;
}

/// Builds a value from what the parser finds. The parser is given whole texts, so numbers and most
/// strings arrive as a whole.
struct ValueBuilder {
  // NOLINTBEGIN(readability-identifier-naming): Boost.JSON asks for these names.
  static constexpr std::size_t max_object_size = json::object::max_size();
  static constexpr std::size_t max_array_size = json::array::max_size();
  static constexpr std::size_t max_key_size = json::string::max_size();
  static constexpr std::size_t max_string_size = json::string::max_size();
  // NOLINTEND(readability-identifier-naming)

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code& error) { return count(error); }
  bool on_object_end(std::size_t size, error_code&) {
    values.push_object(size);
    return true;
  }
  bool on_array_begin(error_code& error) { return count(error); }
  bool on_array_end(std::size_t size, error_code&) {
    values.push_array(size);
    return true;
  }
  // Keys and strings that contain escapes arrive in parts.
  bool on_key_part(json::string_view text, std::size_t, error_code&) {
    values.push_chars(text);
    return true;
  }
  bool on_key(json::string_view text, std::size_t, error_code& error) {
    values.push_key(text);
    return count(error);
  }
  bool on_string_part(json::string_view text, std::size_t, error_code&) {
    values.push_chars(text);
    return true;
  }
  bool on_string(json::string_view text, std::size_t, error_code& error) {
    values.push_string(text);
    return count(error);
  }
  bool on_number_part(json::string_view, error_code&) { return true; }
  bool on_int64(std::int64_t value, json::string_view text, error_code& error) {
    // No integer is -0.
    if (value == 0 && text.front() == '-') {
      values.push_double(-0.0);
    } else {
      values.push_int64(value);
    }
    return count(error);
  }
  bool on_uint64(std::uint64_t value, json::string_view, error_code& error) {
    values.push_uint64(value);
    return count(error);
  }
  bool on_double(double estimate, json::string_view text, error_code& error) {
    values.push_double(to_double({text.data(), text.size()}, estimate));
    return count(error);
  }
  bool on_bool(bool value, error_code& error) {
    values.push_bool(value);
    return count(error);
  }
  bool on_null(error_code& error) {
    values.push_null();
    return count(error);
  }
  bool on_comment_part(json::string_view, error_code&) { return true; }
  bool on_comment(json::string_view, error_code&) { return true; }

  bool count(error_code& error) {
    if (found++ < max_values) return true;
    error = json::error::array_too_large;
    return false;
  }

  std::size_t max_values = SIZE_MAX;
  std::size_t found = 0;  // values, and names of members
  std::array<unsigned char, 2048> first_memory;
  json::value_stack values{json::storage_ptr(), first_memory.data(), first_memory.size()};
};

/// `text` with larger exponents replaced by 99999999, which is beyond what the digits of a text can
/// compensate. All other bytes keep their positions. Boost.JSON reports larger exponents as an
/// error, although 0e9999999999 is valid JSON and is 0.
std::string with_short_exponents(std::string_view text) {
  static constexpr std::size_t kDigits = 8;
  std::string out(text);
  bool in_string = false;
  for (std::size_t at = 0; at < out.size(); ++at) {
    const char c = out[at];
    if (in_string && c == '\\') {
      ++at;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string && (c == 'e' || c == 'E')) {
      const bool is_signed = at + 1 < out.size() && (out[at + 1] == '-' || out[at + 1] == '+');
      const std::size_t first =
          std::min(out.find_first_not_of('0', at + (is_signed ? 2 : 1)), out.size());
      std::size_t end = first;
      while (end < out.size() && is_digit(out[end])) ++end;
      if (end - first <= kDigits) continue;
      const std::size_t beyond = end - first - kDigits;
      out.replace(first, beyond, beyond, '0').replace(end - kDigits, kDigits, kDigits, '9');
    }
  }
  return out;
}

/// Whether what is wrong before `at` is the escape of a surrogate without the other of its pair.
bool is_half_pair(const error_code& error, std::string_view text, std::size_t at) {
  if (error == json::error::illegal_leading_surrogate ||
      error == json::error::illegal_trailing_surrogate) {
    return true;
  }
  constexpr std::size_t kEscape = std::string_view("\\uD800").size();
  const std::string_view before = text.substr(0, std::min(at, text.size()));
  if (error != json::error::syntax || before.size() < kEscape) return false;
  const std::string escape = to_lower(before.substr(before.size() - kEscape));
  return escape.starts_with("\\ud") && std::string_view("89ab").contains(escape[3]);
}

json::parse_options bounded_options() {
  json::parse_options options;
  options.max_depth = kMaxJsonDepth;
  return options;
}

}  // namespace

class JsonParser::Impl {
 public:
  Impl() : parser_(bounded_options()) {}

  std::expected<json::value, JsonSyntaxError> parse(std::string_view text,
                                                    json::storage_ptr storage,
                                                    std::size_t max_values) {
    ValueBuilder& builder = parser_.handler();
    builder.max_values = max_values;
    error_code error;
    std::size_t used = write(text, storage, error);
    if (error == json::error::exponent_overflow) {
      error = {};
      used = write(with_short_exponents(text), storage, error);
    }
    if (!error && used < text.size()) error = json::error::extra_data;
    if (error) {
      // What has been built so far may be in memory that its owner takes back.
      builder.values.reset();
      std::string reason = error.message();
      if (builder.found > max_values) {
        reason = "more than " + std::to_string(max_values) + " values and names";
      } else if (is_half_pair(error, text, used)) {
        reason = "half of a surrogate pair, which is no character,";
      }
      return std::unexpected(JsonSyntaxError{std::move(reason), used});
    }
    return builder.values.release();
  }

  [[nodiscard]] std::size_t values() const { return parser_.handler().found; }

 private:
  /// Returns how many bytes of `text` were read.
  std::size_t write(std::string_view text, json::storage_ptr storage, error_code& error) {
    parser_.reset();
    parser_.handler().values.reset(std::move(storage));
    parser_.handler().found = 0;
    return parser_.write_some(false, text.data(), text.size(), error);
  }

  json::basic_parser<ValueBuilder> parser_;
};

JsonParser::JsonParser() : impl_(std::make_unique<Impl>()) {}
JsonParser::JsonParser(JsonParser&& other) noexcept = default;
JsonParser& JsonParser::operator=(JsonParser&& other) noexcept = default;
JsonParser::~JsonParser() = default;

std::expected<json::value, JsonSyntaxError> JsonParser::parse(std::string_view text,
                                                              json::storage_ptr storage,
                                                              std::size_t max_values) {
  return impl_->parse(text, std::move(storage), max_values);
}

std::size_t JsonParser::values() const {
  return impl_->values();
}

}  // namespace sluice

#include "json/lone_surrogates.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <system_error>

namespace sluice {
namespace {

constexpr std::size_t kEscapeBytes = 6;  // bytes of \uXXXX

/// The code unit of the escape that `text` begins with; nothing if it begins with none.
std::optional<std::uint32_t> unit_at(std::string_view text) {
  if (text.size() < kEscapeBytes || !text.starts_with("\\u")) return std::nullopt;
  std::uint32_t unit = 0;
  const char* const end = text.data() + kEscapeBytes;
  const auto [last, error] = std::from_chars(text.data() + 2, end, unit, 16);
  return error == std::errc() && last == end ? std::optional(unit) : std::nullopt;
}

bool is_high(std::optional<std::uint32_t> unit) {
  return unit && *unit >= 0xD800 && *unit < 0xDC00;
}
bool is_low(std::optional<std::uint32_t> unit) {
  return unit && *unit >= 0xDC00 && *unit < 0xE000;
}

}  // namespace

std::optional<std::string> without_lone_surrogates(std::string_view json) {
  std::string out;
  std::size_t done = 0;
  for (std::size_t at = json.find('\\'); at != std::string_view::npos; at = json.find('\\', at)) {
    const auto unit = unit_at(json.substr(at));
    if (is_high(unit) && is_low(unit_at(json.substr(at + kEscapeBytes)))) {
      at += 2 * kEscapeBytes;
    } else if (is_high(unit) || is_low(unit)) {
      out.append(json, done, at - done).append("\\ufffd");
      at += kEscapeBytes;
      done = at;
    } else {
      at += 2;
    }
  }
  if (done == 0) return std::nullopt;
  return out.append(json, done);
}

std::size_t whole_escapes_prefix(std::string_view json) {
  for (std::size_t at = json.find('\\'); at != std::string_view::npos; at = json.find('\\', at)) {
    const std::string_view rest = json.substr(at);
    const bool is_unit = rest.starts_with("\\u");
    if (rest.size() < (is_unit ? kEscapeBytes : 2)) return at;
    if (!is_unit) {
      at += 2;
      continue;
    }
    const std::string_view behind = rest.substr(kEscapeBytes);
    const bool may_follow = behind.size() < kEscapeBytes &&
                            (behind.starts_with("\\u") || behind == "\\" || behind.empty());
    if (is_high(unit_at(rest)) && may_follow) return at;
    at += kEscapeBytes;
  }
  return json.size();
}

Result<json::value> parse_json_with_lone_surrogates(std::string_view json) {
  Result<json::value> parsed = parse_json(json);
  if (parsed) return parsed;
  const auto repaired = without_lone_surrogates(json);
  return repaired ? parse_json(*repaired) : parsed;
}

}  // namespace sluice

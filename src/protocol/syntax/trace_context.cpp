#include "protocol/syntax/trace_context.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "core/text/text.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

// A traceparent is `version-trace_id-parent_id-flags`, each in hexadecimal digits.
constexpr std::size_t kVersionEnd = 2;
constexpr std::size_t kTraceIdAt = 3;
constexpr std::size_t kTraceIdSize = 32;
constexpr std::size_t kParentIdAt = kTraceIdAt + kTraceIdSize + 1;
constexpr std::size_t kParentIdSize = 16;
constexpr std::size_t kFlagsAt = kParentIdAt + kParentIdSize + 1;
constexpr std::size_t kTraceparentSize = kFlagsAt + 2;
constexpr std::size_t kMaxKey = 256;    // of a member of tracestate
constexpr std::size_t kMaxValue = 256;  // of a member of tracestate
constexpr std::size_t kMaxTraceparent = 256;

bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
bool is_lower_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f');
}

/// The parts of `text` between separators, without the blanks around them.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(trim(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

bool is_nonzero_hex(std::string_view digits) {
  return std::ranges::all_of(digits, is_lower_hex) &&
         digits.find_first_not_of('0') != std::string_view::npos;
}

bool is_traceparent(std::string_view text) {
  if (text.size() < kTraceparentSize || text.size() > kMaxTraceparent) return false;
  const std::string_view version = text.substr(0, kVersionEnd);
  if (!std::ranges::all_of(version, is_lower_hex) || version == "ff") return false;
  // Later versions may append more fields.
  if (text.size() > kTraceparentSize && (version == "00" || text[kTraceparentSize] != '-')) {
    return false;
  }
  return text[kVersionEnd] == '-' && text[kParentIdAt - 1] == '-' && text[kFlagsAt - 1] == '-' &&
         is_nonzero_hex(text.substr(kTraceIdAt, kTraceIdSize)) &&
         is_nonzero_hex(text.substr(kParentIdAt, kParentIdSize)) &&
         std::ranges::all_of(text.substr(kFlagsAt, 2), is_lower_hex);
}

bool is_state_key(std::string_view key) {
  return !key.empty() && key.size() <= kMaxKey && (is_lower(key[0]) || is_digit(key[0])) &&
         std::ranges::all_of(key, [](char c) {
           return is_lower(c) || is_digit(c) ||
                  std::string_view("_-*/@").find(c) != std::string_view::npos;
         });
}

bool is_state_value(std::string_view value) {
  return !value.empty() && value.size() <= kMaxValue && std::ranges::all_of(value, [](char c) {
    return c >= ' ' && c <= '~' && c != ',' && c != '=';
  });
}

bool is_tracestate(std::string_view text) {
  if (text.size() > TraceContext::kMaxTracestate) return false;
  std::vector<std::string_view> keys;
  for (const std::string_view member : split(text, ',')) {
    if (member.empty()) continue;
    const std::size_t equals = member.find('=');
    if (equals == std::string_view::npos) return false;
    const std::string_view key = member.substr(0, equals);
    if (!is_state_key(key) || !is_state_value(member.substr(equals + 1))) return false;
    if (std::ranges::find(keys, key) != keys.end()) return false;
    keys.push_back(key);
  }
  return !keys.empty() && keys.size() <= TraceContext::kMaxTracestateMembers;
}

bool is_baggage_key(std::string_view key) {
  return !key.empty() && std::ranges::all_of(key, is_token_char);
}

bool is_baggage_value(std::string_view value) {
  return std::ranges::all_of(
      value, [](char c) { return c > ' ' && c <= '~' && c != '"' && c != ',' && c != '\\'; });
}

/// Whether `pair` is `key=value`. A property may also be a key alone.
bool is_baggage_pair(std::string_view pair, bool may_lack_value) {
  const std::size_t equals = pair.find('=');
  if (equals == std::string_view::npos) return may_lack_value && is_baggage_key(pair);
  return is_baggage_key(trim(pair.substr(0, equals))) &&
         is_baggage_value(trim(pair.substr(equals + 1)));
}

bool is_baggage(std::string_view text) {
  if (text.empty() || text.size() > TraceContext::kMaxBaggage) return false;
  const std::vector<std::string_view> members = split(text, ',');
  if (members.size() > TraceContext::kMaxBaggageMembers) return false;
  return std::ranges::all_of(members, [](std::string_view member) {
    bool first = true;
    return std::ranges::all_of(split(member, ';'), [&](std::string_view pair) {
      return is_baggage_pair(pair, !std::exchange(first, false));
    });
  });
}

}  // namespace

std::string_view TraceContext::trace_id() const {
  if (traceparent.empty()) return {};
  return std::string_view(traceparent).substr(kTraceIdAt, kTraceIdSize);
}

std::string_view TraceContext::parent_id() const {
  if (traceparent.empty()) return {};
  return std::string_view(traceparent).substr(kParentIdAt, kParentIdSize);
}

bool TraceContext::sampled() const {
  // The sampled flag is the lowest bit of the last hexadecimal digit, so it is set if that digit is
  // odd.
  return !traceparent.empty() &&
         std::string_view("13579bdf").find(traceparent[kFlagsAt + 1]) != std::string_view::npos;
}

std::unique_ptr<const TraceContext> decode_trace_context(const json::object& meta) {
  const std::string_view parent = text_at(meta, "traceparent");
  const std::string_view state = text_at(meta, "tracestate");
  const std::string_view baggage = text_at(meta, "baggage");
  const bool has_parent = is_traceparent(parent);
  const bool has_baggage = is_baggage(baggage);
  if (!has_parent && !has_baggage) return nullptr;
  auto trace = std::make_unique<TraceContext>();
  if (has_parent) trace->traceparent = parent;
  if (has_parent && is_tracestate(state)) trace->tracestate = state;
  if (has_baggage) trace->baggage = baggage;
  return trace;
}

}  // namespace sluice

#include "cli/terminal/traffic_text.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <string_view>
#include <unistd.h>

#include "cli/terminal/terminal.hpp"
#include "core/text/secrets.hpp"
#include "core/text/text.hpp"
#include "json/json.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

void mask_secrets(json::value& value);

void mask_member(std::string_view name, json::value& value) {
  if (sounds_secret(name) && !value.is_bool() && !value.is_null()) {
    value = kMask;
  } else {
    mask_secrets(value);
  }
}

void mask_secrets(json::value& value) {
  if (json::object* const object = value.if_object()) {
    for (auto& [name, member] : *object) mask_member(name, member);
    // As of the argument that is completed: {"name": "token", "value": "..."}.
    if (json::value* const named = object->if_contains("value")) {
      mask_member(std::string(text_at(*object, "name")), *named);
    }
  } else if (json::array* const array = value.if_array()) {
    for (json::value& each : *array) mask_secrets(each);
  } else if (const json::string* const text = value.if_string()) {
    const std::string_view view = *text;
    if (looks_like_secret(view)) {
      value = kMask;
    } else if (view.contains("://") && !view.contains(' ')) {
      value = masked_url(view);
    }
  }
}

std::string message_text(std::string_view message) {
  Result<json::value> parsed = parse_json(message);
  if (!parsed) return "(no JSON) " + std::string(message);
  mask_secrets(*parsed);
  return to_json(*parsed);
}

/// Whether a field is of no interest to somebody who looks into what MCP does.
bool is_plain_http(std::string_view name) {
  static constexpr std::array<std::string_view, 11> kPlain = {
      {"accept", "accept-encoding", "cache-control", "connection", "content-length", "date",
       "keep-alive", "transfer-encoding", "user-agent", "vary", "x-content-type-options"}};
  const std::string lower = to_lower(name);
  return lower.starts_with("access-control-") || std::ranges::find(kPlain, lower) != kPlain.end();
}

std::string head_text(const Traffic& head) {
  std::string out = head.start;
  std::string_view separator = "  ";
  for (const auto& [name, value] : head.headers) {
    if (is_plain_http(name)) continue;
    out.append(separator).append(name).append(": ").append(value);
    separator = "; ";
  }
  return out;
}

}  // namespace

std::string traffic_text(const Traffic& traffic) {
  const std::string text =
      one_line(traffic.message.empty() ? head_text(traffic) : message_text(traffic.message));
  std::string out = (traffic.is_sent ? "> " : "< ") + std::string(traffic.transport) + " " +
                    shortened(text, kMaxShownTraffic);
  if (text.size() > kMaxShownTraffic) {
    out.append(" (").append(std::to_string(text.size())).append(" bytes)");
  }
  return out;
}

OnTraffic traffic_printer() {
  const auto start = std::chrono::steady_clock::now();
  return [start, style = Style::of(STDERR_FILENO)](const Traffic& traffic) {
    const std::chrono::duration<double> since = std::chrono::steady_clock::now() - start;
    std::array<char, 32> time{};
    std::snprintf(time.data(), time.size(), "%.3f s ", since.count());
    std::string line(style.dim());
    line.append(time.data()).append(traffic_text(traffic)).append(style.reset()).append("\n");
    // Nobody is told if standard error takes no more: there is no other place to say so.
    static_cast<void>(write_all(STDERR_FILENO, line));
  };
}

}  // namespace sluice

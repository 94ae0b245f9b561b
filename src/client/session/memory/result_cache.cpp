#include "client/session/memory/result_cache.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

#include "json/members.hpp"

namespace sluice {
namespace {

constexpr std::string_view kRead = "resources/read";

/// How long the result is fresh.
Duration ttl_of(const json::object& result) {
  const json::value* const ttl = result.if_contains("ttlMs");
  if (ttl == nullptr || !ttl->is_int64() || ttl->get_int64() <= 0) return {};
  constexpr std::int64_t kYear = std::int64_t{365} * 24 * 3600 * 1000;
  return std::chrono::milliseconds(std::min(ttl->get_int64(), kYear));
}

}  // namespace

bool ResultCache::is_cacheable(std::string_view method) {
  static constexpr std::array<std::string_view, 5> kMethods = {
      "tools/list", "prompts/list", "resources/list", "resources/templates/list", kRead};
  return std::ranges::find(kMethods, method) != kMethods.end();
}

std::optional<json::object> ResultCache::find(std::string_view method, const json::object& params,
                                              TimePoint now) {
  if (entries_.empty()) return std::nullopt;
  const std::string text = to_json(params);
  const auto found = std::ranges::find_if(
      entries_, [&](const Entry& each) { return each.method == method && each.params == text; });
  if (found == entries_.end()) return std::nullopt;
  if (found->until <= now) {
    erase(found);
    return std::nullopt;
  }
  entries_.splice(entries_.begin(), entries_, found);
  return found->result;
}

void ResultCache::add(std::string_view method, const json::object& params,
                      const json::object& result, std::size_t bytes, TimePoint now) {
  const Duration ttl = ttl_of(result);
  if (ttl <= Duration() || bytes > kMaxBytes) return;
  std::string text = to_json(params);
  std::erase_if(entries_, [&](const Entry& each) {
    const bool is_old = each.method == method && each.params == text;
    if (is_old) bytes_ -= each.bytes;
    return is_old;
  });
  entries_.push_front({.method = std::string(method),
                       .params = std::move(text),
                       .uri = method == kRead ? std::string(text_at(params, "uri")) : std::string(),
                       .result = json::object(result, json::storage_ptr()),
                       .bytes = bytes,
                       .until = now + ttl});
  bytes_ += bytes;
  while (bytes_ > kMaxBytes || entries_.size() > kMaxEntries) erase(std::prev(entries_.end()));
}

ResultCache::Entries::iterator ResultCache::erase(Entries::iterator entry) {
  bytes_ -= entry->bytes;
  return entries_.erase(entry);
}

void ResultCache::drop(std::string_view method) {
  for (auto each = entries_.begin(); each != entries_.end();) {
    each = each->method == method ? erase(each) : std::next(each);
  }
}

void ResultCache::on_notification(std::string_view method, const json::object& params) {
  if (entries_.empty()) return;
  if (method == "notifications/tools/list_changed") return drop("tools/list");
  if (method == "notifications/prompts/list_changed") return drop("prompts/list");
  if (method == "notifications/resources/list_changed") {
    drop("resources/list");
    return drop("resources/templates/list");
  }
  if (method != "notifications/resources/updated") return;
  // The URI may be that of a part of the resource that was read.
  const std::string_view changed = text_at(params, "uri");
  for (auto each = entries_.begin(); each != entries_.end();) {
    const bool is_stale = each->method == kRead && changed.starts_with(each->uri);
    each = is_stale ? erase(each) : std::next(each);
  }
}

}  // namespace sluice

#pragma once

#include <cstddef>
#include <list>
#include <optional>
#include <string>
#include <string_view>

#include "core/clock.hpp"
#include "json/json.hpp"

namespace sluice {

/// The results of a server that are still fresh (2026-07-28, Caching): lists, page by page, and
/// resources that were read. It is of one connection, so results are shared with nobody, whatever
/// their `cacheScope`. Belongs to its session.
class ResultCache {
 public:
  /// Whether results of this method may be kept.
  static bool is_cacheable(std::string_view method);

  /// A copy of the result, if there is a fresh one for just these params.
  std::optional<json::object> find(std::string_view method, const json::object& params,
                                   TimePoint now);
  /// Keeps `result` for its `ttlMs`, if that is positive. `bytes` is its length as text. Beyond
  /// kMaxBytes or kMaxEntries, what has been unused for longest is dropped; a result of more than
  /// kMaxBytes is not kept.
  void add(std::string_view method, const json::object& params, const json::object& result,
           std::size_t bytes, TimePoint now);
  /// Drops what a notification of the server makes stale.
  void on_notification(std::string_view method, const json::object& params);
  /// Drops all results of a method.
  void drop(std::string_view method);

  static constexpr std::size_t kMaxBytes = std::size_t{16} << 20U;
  static constexpr std::size_t kMaxEntries = 1000;

 private:
  struct Entry {
    std::string method;
    std::string params;  // JSON
    std::string uri;     // of a resource
    json::object result;
    std::size_t bytes;
    TimePoint until;
  };
  using Entries = std::list<Entry>;
  Entries::iterator erase(Entries::iterator entry);

  Entries entries_;  // the last one used first
  std::size_t bytes_ = 0;
};

}  // namespace sluice

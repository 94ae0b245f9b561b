#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>

#include "json/json.hpp"

namespace sluice {

class SessionActivity;

/// The activities of a session that are under way, by their numbers.
class SessionActivities {
 public:
  using Number = std::uint64_t;

  SessionActivity& add(Number number, std::shared_ptr<SessionActivity> activity);
  /// Null if there is none.
  [[nodiscard]] std::shared_ptr<SessionActivity> find(Number number) const;
  /// Removes it; null if there is none.
  std::shared_ptr<SessionActivity> take(Number number);
  void stop_all();

  /// Tells each of a notification. Returns whether it was for some of them alone.
  bool on_notification(std::string_view method, const json::object& params);
  void on_renewed();

  /// Whether any but `except` wants to hear of changes of a resource.
  [[nodiscard]] bool is_watched(std::string_view uri, const SessionActivity& except) const;
  [[nodiscard]] std::size_t size() const { return all_.size(); }
  [[nodiscard]] const std::map<Number, std::shared_ptr<SessionActivity>>& all() const {
    return all_;
  }

 private:
  std::map<Number, std::shared_ptr<SessionActivity>> all_;
};

}  // namespace sluice

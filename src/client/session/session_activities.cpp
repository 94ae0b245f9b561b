#include "client/session/session_activities.hpp"

#include <algorithm>
#include <utility>

#include "client/session/session_activity.hpp"

namespace sluice {

SessionActivity& SessionActivities::add(Number number, std::shared_ptr<SessionActivity> activity) {
  return *all_.emplace(number, std::move(activity)).first->second;
}

std::shared_ptr<SessionActivity> SessionActivities::find(Number number) const {
  const auto found = all_.find(number);
  return found == all_.end() ? nullptr : found->second;
}

std::shared_ptr<SessionActivity> SessionActivities::take(Number number) {
  auto taken = all_.extract(number);
  return taken.empty() ? nullptr : std::move(taken.mapped());
}

void SessionActivities::stop_all() {
  for (const auto& [number, activity] : std::exchange(all_, {})) activity->stop();
}

bool SessionActivities::on_notification(std::string_view method, const json::object& params) {
  bool is_taken = false;
  // Each may end, or begin others.
  for (const auto& [number, activity] : std::map(all_)) {
    if (all_.contains(number)) is_taken |= activity->on_notification(method, params);
  }
  return is_taken;
}

void SessionActivities::on_renewed() {
  for (const auto& [number, activity] : std::map(all_)) {
    if (all_.contains(number)) activity->on_renewed();
  }
}

bool SessionActivities::is_watched(std::string_view uri, const SessionActivity& except) const {
  return std::ranges::any_of(all_, [&](const auto& each) {
    return each.second.get() != &except && each.second->watches(uri);
  });
}

}  // namespace sluice

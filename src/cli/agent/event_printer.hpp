#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/agent/agent_view.hpp"
#include "core/clock.hpp"
#include "json/json.hpp"
#include "sluice/agent_event.hpp"

namespace sluice {

/// Prints the events of a run on standard output, as text or as lines of JSON.
class EventPrinter {
 public:
  EventPrinter(bool as_json, bool for_ui);
  /// What to print for an event as it is recorded; may be empty.
  std::string show(const json::object& event);
  /// The same of a run that goes on. `shown`: the event as it is recorded.
  std::string show(const AgentEvent& event, const json::object& shown, std::string_view run_id);
  /// What to print last, and before something else is shown.
  std::string finish() { return as_json_ ? std::string() : view_.finish(); }
  /// Returns the program's exit code: kExitOk, or that of sluice::print() or print_lines().
  int print(std::string_view text);
  /// The program is about to end; see print_lines().
  void hurry();

 private:
  const bool as_json_;
  const bool for_ui_;
  const bool keeps_lines_;  // another program reads them
  AgentView view_;
  UiEvents ui_;
  std::optional<TimePoint> until_;
};

}  // namespace sluice

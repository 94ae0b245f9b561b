#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "cli/terminal/terminal.hpp"
#include "json/json.hpp"

namespace sluice {

/// Shows the events of a run (docs/events.md) in two lanes: what the model says as it is, and what
/// tools write behind a bar with the tool's name. Returns text, and writes nothing itself. Texts of
/// the model and of tools are made safe to show.
class AgentView {
 public:
  explicit AgentView(Style style) : style_(style) {}

  /// What to print for an event, as JSON has it.
  std::string show(const json::object& event);
  /// What to print last.
  std::string finish() { return break_line(); }

 private:
  std::string model_text(std::string_view delta);
  std::string tool_line(std::string_view call_id, std::string_view text);
  std::string note(std::string_view call_id, std::string_view text);
  /// Ends the line of the lane that was written last.
  std::string break_line();
  void name_call(std::string_view call_id, std::string_view tool);
  [[nodiscard]] std::string label(std::string_view call_id) const;

  Style style_;
  std::map<std::string, std::string, std::less<>> tools_;  // by call
  std::string lane_;                                       // that was written last; empty: none
  bool is_at_line_start_ = true;                           // of that lane
};

}  // namespace sluice

#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "cli/agent/agent_trace.hpp"
#include "cli/terminal/terminal.hpp"

namespace sluice {

/// A recorded run that is shown event by event, forward and back. Returns text, and writes nothing.
class TraceStepper {
 public:
  /// `events` outlive this.
  TraceStepper(std::span<const TracedEvent> events, Style style) : events_(events), style_(style) {}

  /// What keys do, each a character or the sequence of an arrow. Those that mean nothing do
  /// nothing.
  void press(std::string_view keys);
  [[nodiscard]] bool is_over() const { return is_over_; }
  /// What has been shown so far, and below it which event was the last, and the keys.
  [[nodiscard]] std::string screen() const;

 private:
  void press_one(std::string_view key);

  std::span<const TracedEvent> events_;
  Style style_;
  std::size_t shown_ = 1;  // events
  bool is_over_ = false;
};

/// Shows a run on the terminal until the user ends that. Returns the exit code of the program:
/// kExitUsage if there is no terminal for it.
int step_through(std::span<const TracedEvent> events);

}  // namespace sluice

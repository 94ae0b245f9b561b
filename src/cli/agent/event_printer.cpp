#include "cli/agent/event_printer.hpp"

#include <unistd.h>

#include "cli/options/exit_code.hpp"
#include "cli/terminal/terminal.hpp"

namespace sluice {
namespace {

std::string json_line(const json::object& event) {
  return printable_json(to_json(event)) + "\n";
}

}  // namespace

EventPrinter::EventPrinter(bool as_json, bool for_ui)
    : as_json_(as_json || for_ui),
      for_ui_(for_ui),
      keeps_lines_(as_json_ && !is_terminal(STDOUT_FILENO)),
      view_(Style::of(STDOUT_FILENO)) {}

std::string EventPrinter::show(const json::object& event) {
  return as_json_ ? json_line(event) : view_.show(event);
}

std::string EventPrinter::show(const AgentEvent& event, const json::object& shown,
                               std::string_view run_id) {
  if (!for_ui_) return show(shown);
  std::string text;
  for (const json::object& each : ui_.show(event, run_id)) text += json_line(each);
  return text;
}

int EventPrinter::print(std::string_view text) {
  if (text.empty()) return kExitOk;
  return keeps_lines_ ? print_lines(text, until_) : sluice::print(text);
}

void EventPrinter::hurry() {
  if (!until_) until_ = SteadyClock().now() + kLastOutput;
}

}  // namespace sluice

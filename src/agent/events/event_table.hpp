#pragma once

#include <string>

namespace sluice {

/// The table of docs/events.md, in Markdown: kAgentEvents.
std::string event_table();

}  // namespace sluice

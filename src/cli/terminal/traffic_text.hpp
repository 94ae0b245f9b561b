#pragma once

#include <cstddef>
#include <string>

#include "sluice/client.hpp"

namespace sluice {

/// One piece of traffic on one line, as in `> http POST http://host/mcp  Mcp-Method: tools/call`.
/// Member values whose names sound secret (`sounds_secret()`) are `***`, and so are the values of
/// queries in URLs. Fields of heads that say nothing about MCP are left out. A message of more than
/// kMaxShownTraffic bytes is cut, and its size is said.
std::string traffic_text(const Traffic& traffic);
inline constexpr std::size_t kMaxShownTraffic = 2000;

/// Prints traffic on standard error, each line with the seconds since this call.
OnTraffic traffic_printer();

}  // namespace sluice

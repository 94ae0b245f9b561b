#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sluice/json.hpp"

namespace sluice {

/// What a server says of a call that is under way: notifications/progress, or, if the call asks for
/// them (CallOptions::log_level), log messages.
struct CallEvent {
  /// Text; a piece of the tool's output, if the tool streams. Of a log message, what is text in it.
  std::string message = {};
  double progress = 0;               // grows from event to event
  std::optional<double> total = {};  // of the progress, if known
  json::object params = {};          // the whole notification
  std::uint64_t dropped = 0;         // events that were dropped just before this one
  bool is_log = false;               // `params` are those of notifications/message
  /// The connection broke, and the call was sent again: its events begin anew with this one.
  bool is_restart = false;
};

}  // namespace sluice

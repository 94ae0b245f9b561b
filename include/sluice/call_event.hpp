#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sluice/json.hpp"

namespace sluice {

/// What a server says of a call that is under way: notifications/progress, or, if the call asks for
/// them, log messages (CallOptions::log_level) and partial results (CallOptions::partial_results).
struct CallEvent {
  /// Text; a piece of the tool's output, if the tool streams. Of a log message, what is text in it;
  /// of a partial result, its text blocks, separated by line breaks.
  std::string message = {};
  double progress = 0;               // grows from event to event
  std::optional<double> total = {};  // of the progress, if known
  json::object params = {};          // the whole notification; see CallOptions::event_params
  /// Events that were dropped just before this one, and partial results that are missing there.
  std::uint64_t dropped = 0;
  bool is_log = false;  // `params` are those of notifications/message
  /// `params` are those of notifications/tools/partial_result (draft SEP-2998).
  bool is_partial_result = false;
  /// The connection broke, and the call was sent again: its events begin anew with this one, but
  /// for partial results, which go on.
  bool is_restart = false;
  /// Where the call can be taken up behind this event: Client::resume(). Empty: nothing new is
  /// known of that. Only if CallOptions::resumable. It has the id of the session, so whoever has it
  /// can act as this client.
  std::string resumption = {};
  bool has_no_message = false;  // the server has said nothing; there is a `resumption` alone
};

}  // namespace sluice

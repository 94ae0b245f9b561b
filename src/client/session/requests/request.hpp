#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "json/json.hpp"

namespace sluice {

struct RequestOptions {
  /// Without an answer or progress for so long, the request is given up and the server told. 0: no
  /// limit.
  Duration idle_timeout = std::chrono::seconds(60);
  Duration timeout = {};  // in total; 0: no limit
  /// A modern server may make a task of it, and then answers with a CreateTaskResult (SEP-2663).
  bool may_become_task = false;
  /// Whether a new session is begun for it if the server has forgotten this one. Otherwise it
  /// fails.
  bool renews_session = true;
  /// It is asked also while as many requests are unanswered as may be.
  bool is_probe = false;
  /// What the message takes in somebody's memory; kept until the link has done with it, also if the
  /// request is cancelled before. Further rounds have none.
  std::shared_ptr<void> memory = {};
};

/// The same, without times that overflow a clock.
inline RequestOptions cut_to_forever(RequestOptions options) {
  options.idle_timeout = at_most_forever(options.idle_timeout);
  options.timeout = at_most_forever(options.timeout);
  return options;
}

struct RequestCallbacks {
  /// The params of each notifications/progress; see also ClientSession::follow_task() and watch().
  /// They are valid during the call, and use the message's memory: a copy that is to outlive it
  /// needs storage of its own.
  std::function<void(const json::object& params)> on_progress = {};
  /// Other notifications that came in the reply to the request, where requests have such.
  std::function<void(std::string_view method, const json::object& params)> on_notification = {};
  /// The params of log messages among these, in place of on_notification.
  std::function<void(const json::object& params)> on_log = {};
  /// The params of each part of a tool's result that comes before the result (draft SEP-2998), and
  /// how many are missing before it. A call that has this asks for them. Valid as those of
  /// progress.
  std::function<void(const json::object& params, std::uint64_t missing)> on_partial_result = {};
  /// The answer can be taken up behind what was said (to_text() of a StreamPosition).
  std::function<void(std::string position)> on_position = {};
  /// The stream of the answer broke off and the request is sent again: its progress begins anew.
  /// Without this, a request is not sent again if one of those above is there, for what was said
  /// would be said twice.
  std::function<void()> on_reissued = {};
  /// Called once: the result, the server's error, or why there is no answer. kTimedOut: too late.
  std::function<void(Result<json::object>)> on_answer = {};
  /// In place of on_answer, for a result that the session neither changes nor keeps. It is valid
  /// during the call, and uses the message's memory, as the params of progress do.
  std::function<void(const json::object& result)> on_result = {};
};

}  // namespace sluice

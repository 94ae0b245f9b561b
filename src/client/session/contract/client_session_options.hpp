#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/unique_function.hpp"
#include "json/json.hpp"
#include "sluice/client_info.hpp"

namespace sluice {

/// Something that the server asks the client for: `method` with `params`, such as
/// elicitation/create.
struct ServerQuestion {
  std::uint64_t number = 0;   // of all questions of the session
  std::uint64_t request = 0;  // the ClientSession::Number that it belongs to; 0: not known
  std::string key = {};       // among `inputRequests` (2026-07-28), or kQuestionKey; empty: none
  std::string method;
  json::object params;
  /// Call once, now or later, on the session's loop. Does nothing if nobody waits any more.
  UniqueFunction<void(Result<json::object>)> answer;
};

struct ClientSessionOptions {
  ClientInfo info = {.name = "sluice", .version = "0"};
  json::object capabilities = {};  // a ClientCapabilities object
  /// The revision to speak. Empty: whatever the server speaks, which a probe finds out (2026-07-28,
  /// Versioning, Backward Compatibility).
  std::string revision = {};
  /// False: a server of a given modern revision is not asked what it speaks. Nothing is known about
  /// it then.
  bool asks_first = true;
  /// The server is known to be of the legacy era, so it is not probed. Only without `revision`.
  bool expects_legacy = false;
  /// Several clients use the session. Log messages and questions in the reply to a request that is
  /// answered belong to none of them then.
  bool is_shared = false;
  /// A server that is silent for so long is a legacy one. Counts from when the connection stands,
  /// if the link tells that; until then, connect_timeout counts.
  Duration probe_timeout = std::chrono::seconds(5);
  Duration connect_timeout = std::chrono::seconds(30);  // for `initialize`
  std::size_t max_requests = 1000;                      // unanswered
  std::size_t max_questions = 100;                      // unanswered
  /// Bytes that the unanswered questions may take. A question that does not fit fails.
  std::size_t max_question_memory = std::size_t{64} << 20U;
  int max_rounds = 10;  // of one request (MRTR)
  /// Questions have numbers behind this one, so that several sessions can ask the same user.
  std::uint64_t first_question = 0;
  /// Whether results are kept while they are fresh; see ResultCache.
  bool caches = false;
  /// Whether the result of a tool that does not follow its outputSchema is an error; see
  /// ListedTools::check_output().
  bool checks_output = false;
  /// Is asked what the server asks. Empty: such a request is refused.
  std::function<void(ServerQuestion)> on_question = {};
  /// Is told the number of a question that nobody waits for any more.
  std::function<void(std::uint64_t question)> on_withdrawn = {};
  /// Is told of notifications that belong to no request, or to one without `on_notification`.
  std::function<void(std::string_view method, const json::object& params)> on_notification = {};
  /// Is told that the server had forgotten the session, and that there is a new one. What the
  /// server kept for the old one is lost: subscriptions, the log level, what calls stored.
  std::function<void()> on_renewed = {};
  /// Called after that. What waits for the new session is sent again when `go_on` is called, at
  /// once or later. Null: it is sent at once.
  std::function<void(std::function<void()> go_on)> before_repeating = {};
  /// Is told that the server has forgotten the session and refuses to begin another: with an error
  /// that is neither about access nor silence. The answers of the requests that wait for it follow.
  std::function<void(const Error&)> on_not_renewed = {};
  /// Is told as ServerLink::Owner::on_listening() is.
  std::function<void()> on_listening = {};
  /// Is told, once, that the link is over. All requests have failed before.
  std::function<void(const Error&)> on_lost = {};
};

}  // namespace sluice

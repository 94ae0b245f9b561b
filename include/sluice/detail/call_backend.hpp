#pragma once

// What stands behind sluice::Call.

#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/detail/duration.hpp"
#include "sluice/detail/loop_backend.hpp"
#include "sluice/error.hpp"
#include "sluice/json.hpp"
#include "sluice/logging_level.hpp"
#include "sluice/trace_context.hpp"

namespace sluice {

struct Revision;

/// A request to the client: `elicitation/create`, `sampling/createMessage` or `roots/list`.
struct Question {
  std::string method;
  json::object params = {};
  /// Names it among the questions of one handler; empty: its number.
  std::string key = {};
};

/// What a client says it can be asked for.
struct ClientFeatures {
  bool elicitation = false;
  bool elicitation_url = false;
  bool sampling = false;
  bool sampling_tools = false;
  bool roots = false;
};

namespace detail {

/// What is known of a request.
struct CallFacts;

/// A request as its handler sees it. On the loop of the request, unless it says otherwise.
class CallBackend {
 public:
  using Answer = std::move_only_function<void(std::expected<std::vector<json::value>, Error>)>;

  virtual ~CallBackend() = default;
  virtual LoopBackend& loop() = 0;
  virtual const CallFacts& facts() const = 0;

  // False: there is no room for more until when_room() says so.
  virtual bool text(std::string_view text) = 0;
  virtual bool progress(double progress, std::optional<double> total, std::string_view message) = 0;
  virtual bool log(LoggingLevel level, std::string_view logger, const json::value& data) = 0;
  virtual void disconnect(std::chrono::milliseconds retry) = 0;
  virtual void begin_task() = 0;
  virtual const std::string& idempotency_key() = 0;

  virtual void when_room(Job job) = 0;
  /// What it returns takes the questions back, or is empty.
  virtual Job ask(std::vector<Question> questions, Answer answer) = 0;

  /// The same call for a worker thread, which waits where a coroutine would be suspended.
  virtual std::shared_ptr<CallBackend> for_worker() = 0;
};

}  // namespace detail

}  // namespace sluice

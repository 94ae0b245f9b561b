#pragma once

// The interface behind sluice::Call, and the types of its questions.

#include <cstdint>
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
  /// Identifies the question among those of one handler. Empty: Call::ask() numbers it.
  std::string key = {};
};

/// What a client has declared that it can be asked for.
struct ClientFeatures {
  bool elicitation = false;
  bool elicitation_url = false;
  bool sampling = false;
  bool sampling_tools = false;
  bool roots = false;
};

namespace detail {

/// What the server knows about a request.
struct CallFacts;

/// A request as its handler sees it. Used only on the event loop of the request, except for what
/// for_worker() returns.
class CallBackend {
 public:
  using Answer = std::move_only_function<void(std::expected<std::vector<json::value>, Error>)>;

  virtual ~CallBackend() = default;
  virtual LoopBackend& loop() = 0;
  virtual const CallFacts& facts() const = 0;
  virtual const json::object& meta() = 0;

  // These return false under backpressure: the caller should send no more until when_room() runs
  // its job.
  virtual bool text(std::string_view text) = 0;
  virtual bool progress(double progress, std::optional<double> total, std::string_view message) = 0;
  virtual bool log(LoggingLevel level, std::string_view logger, const json::value& data) = 0;
  virtual void disconnect(std::chrono::milliseconds retry) = 0;
  virtual void begin_task() = 0;
  virtual const std::string& idempotency_key() = 0;

  /// Runs `job` when there is room, which may be now. Returns the wait for forget_room(), which
  /// ignores one that is over.
  virtual std::uint64_t when_room(Job job) = 0;
  virtual void forget_room(std::uint64_t wait) = 0;
  /// Returns a job that withdraws the questions, or an empty one.
  virtual Job ask(std::vector<Question> questions, Answer answer) = 0;

  /// The same call for a worker thread. It blocks where a coroutine would be suspended.
  virtual std::shared_ptr<CallBackend> for_worker() = 0;
};

}  // namespace detail

}  // namespace sluice

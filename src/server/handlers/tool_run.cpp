#include "server/handlers/tool_run.hpp"

#include <exception>
#include <optional>
#include <utility>

#include "core/sharing/client.hpp"
#include "rpc/error_codes.hpp"
#include "server/calls/calls.hpp"

namespace sluice {
namespace {

/// A call whose arguments are being checked. Keeps itself alive until that is done or the call is
/// over.
class CheckedRun final : public StreamProducer, public std::enable_shared_from_this<CheckedRun> {
 public:
  CheckedRun(const Tool& tool, std::shared_ptr<PendingRequest> call)
      : tool_(&tool), call_(std::move(call)) {}

  void start(LongMessages& checks, const JsonSchema& input, std::string text) {
    self_ = shared_from_this();
    call_->set_producer(this);
    if (tool_->timeout > Duration::zero()) {
      Executor& loop = call_->executor();
      timer_ = loop.schedule_at(loop.clock().now() + at_most_forever(tool_->timeout),
                                [weak = weak_from_this()] {
                                  if (const auto self = weak.lock()) self->on_timeout();
                                });
    }
    message_ = checks.parse(
        std::move(text),
        [weak = weak_from_this()] {
          if (const auto self = weak.lock()) self->go_on();
        },
        call_->principal().id,
        [input, tool = tool_, found = found_](const Message& message) {
          const json::value& arguments = arguments_of(params_of(message));
          const auto valid = input.validate(arguments);
          if (!valid) {
            found->violation = valid.error();
          } else if (tool->decode != nullptr) {
            found->input = decode_input(*tool, arguments.get_object());
          }
        });
  }

  void on_writable() override {}
  void on_cancel() override {
    const std::shared_ptr<CheckedRun> keep = std::move(self_);
    call_->executor().cancel(timer_);
    message_ = nullptr;
  }

 private:
  struct Found {
    std::optional<JsonSchemaViolation> violation;
    detail::DecodedInput input;
  };

  void on_timeout() {
    call_->fail(call_timed_out());
    on_cancel();
  }

  void go_on() {
    const std::shared_ptr<CheckedRun> keep = std::move(self_);
    call_->executor().cancel(timer_);
    const std::unique_ptr<LongMessage> message = std::move(message_);
    call_->set_producer(nullptr);
    if (!message->message()) {
      call_->fail(message->message().error().error);
    } else if (found_->violation) {
      refuse("Invalid params: " + found_->violation->describe("arguments"));
    } else {
      run_tool(*tool_, params_of(*message->message()), call_, &found_->input);
    }
  }

  void refuse(std::string why) {
    if (call_->context().revision->input_errors) {
      call_->complete({.text = std::move(why), .is_error = true});
    } else {
      call_->fail({kInvalidParams, std::move(why), {}});
    }
  }

  const Tool* tool_;
  std::shared_ptr<PendingRequest> call_;
  std::unique_ptr<LongMessage> message_;
  Executor::TimerId timer_ = 0;
  /// Written on the worker before the message is ready.
  std::shared_ptr<Found> found_ = std::make_shared<Found>();
  std::shared_ptr<CheckedRun> self_;
};

}  // namespace

const json::value& arguments_of(const json::object& params) {
  static const json::value kNoArguments(json::object_kind);
  const json::value* const given = params.if_contains("arguments");
  return given == nullptr ? kNoArguments : *given;
}

detail::DecodedInput decode_input(const Tool& tool, const json::object& arguments) noexcept {
  detail::DecodedInput input;
  detail::take_decoded_memory();
  try {
    input.value = tool.decode(arguments);
    input.memory = detail::take_decoded_memory();
  } catch (...) {
    input.failure = std::current_exception();
  }
  return input;
}

Result<void> start_tool(const Tool& tool, const json::object& arguments, std::size_t values,
                        std::shared_ptr<PendingRequest> call, detail::DecodedInput* decoded) {
  const auto& handler = std::get<Tool::Deferred>(tool.handler);
  detail::DecodedInput input;
  if (decoded == nullptr && tool.decode != nullptr && values > kFewValues) {
    input = decode_input(tool, arguments);
    decoded = &input;
  }
  if (decoded == nullptr) return handler(arguments, std::move(call));
  if (Result<void> held = call->hold_input(decoded->memory); !held) return held;
  return handler({arguments, *decoded}, std::move(call));
}

void run_tool(const Tool& tool, const json::object& params,
              const std::shared_ptr<PendingRequest>& call, detail::DecodedInput* decoded) {
  const json::value& arguments = arguments_of(params);
  const json::object& object = arguments.get_object();
  const PendingRequest::Parameters parameters(*call, &params);
  if (const auto* immediate = std::get_if<Tool::Immediate>(&tool.handler)) {
    if (Calls* const calls = call->calls()) calls->watch().begin({"tool", tool.name});
    Result<ToolResult> result = (*immediate)(
        decoded == nullptr ? Tool::Arguments(object) : Tool::Arguments(object, *decoded));
    if (result) {
      call->complete(*std::move(result));
    } else {
      call->fail(result.error());
    }
    return;
  }
  const Result<void> started = start_tool(tool, object, size_of(arguments).values, call, decoded);
  if (!started) call->fail(started.error());
}

void run_tool_checked(LongMessages& checks, const Tool& tool, const JsonSchema& input,
                      std::string text, const std::shared_ptr<PendingRequest>& call) {
  std::make_shared<CheckedRun>(tool, call)->start(checks, input, std::move(text));
}

}  // namespace sluice

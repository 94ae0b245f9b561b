// Parameters of the functions of RKLLM's C interface, as the methods and the tools take them: calls
// one after the other in the sessions of two clients. Whatever is accepted asks the engine for what
// it may be asked for, each call is answered once, with an object or an error that can be sent, and
// nothing is left behind.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/manual_executor.hpp"
#include "engine/methods/engine_methods.hpp"
#include "engine/methods/run_call.hpp"
#include "json/json.hpp"
#include "require.hpp"
#include "rpc/error_codes.hpp"
#include "rpc/message.hpp"
#include "server/sessions/session_storage.hpp"
#include "stream/stream_manager.hpp"

namespace {

using namespace sluice;

/// What is true of every request that gets as far as an engine.
void check_request(const GenerationRequest& request) {
  require(request.prompt.empty() || request.messages.empty());
  if (request.input != nullptr) {
    require(request.prompt.empty() && request.messages.empty());
    const std::size_t tokens = count_tokens(*request.input);
    require(tokens > 0 && tokens <= ModelInputLimits::kTokens);
    const auto check_numbers = [tokens](const std::vector<float>& numbers) {
      require(!numbers.empty() && numbers.size() % tokens == 0);
      for (const float each : numbers) require(std::isfinite(each));
    };
    if (const auto* const embed = std::get_if<EmbedData>(request.input.get())) {
      check_numbers(embed->embed);
    } else if (const auto* const images = std::get_if<MultiModalData>(request.input.get())) {
      check_numbers(images->image_embed);
      require(!images->prompt.empty());
    }
  }
  require(request.json_schema.empty() || request.grammar.empty());
  require(!request.max_tokens || *request.max_tokens >= 1);
  require(request.tools.empty() || parse_json(request.tools).has_value());
  require(request.new_messages <= request.messages.size());
}

/// Checks each request, and answers it at once.
class CheckingEngine final : public Engine {
 public:
  struct Run final : Generation {
    void cancel() override {}
    void resume() override {}
    [[nodiscard]] GenerationStatus status() const override { return {}; }
    [[nodiscard]] bool keeps_sequence() const override { return true; }
  };
  Result<std::unique_ptr<Generation>> start(GenerationRequest request,
                                            std::shared_ptr<GenerationSink> sink,
                                            Executor& home) override {
    check_request(request);
    home.post([sink = std::move(sink)] {
      sink->on_delta({.text = "yes"});
      sink->on_delta({.kind = Delta::Kind::members, .text = R"("logits":{"vocab_size":1})"});
      sink->on_complete({});
    });
    return std::make_unique<Run>();
  }
  [[nodiscard]] EngineInfo info() const override {
    return {.engine = "checking", .model = "a model", .context_tokens = 2048, .takes_inputs = true};
  }
  [[nodiscard]] EngineStats stats() const override { return {}; }
  void shutdown() override {}
};

void check_answer(const Result<std::string>& answer) {
  if (answer) {
    const Result<json::value> parsed = parse_json(*answer);
    require(parsed && parsed->is_object() && !parsed->get_object().empty());
    return;
  }
  require(answer.error().code != 0 && !answer.error().message.empty());
  std::string reply;
  append_error(reply, RequestId{}, answer.error());
  require(parse_json(reply).has_value());
}

void check_decoders(const json::object& params) {
  if (const auto call = decode_run_call(params)) {
    GenerationRequest request = call->request;
    apply(call->settings, request);
    check_request(request);
  } else {
    require(call.error().code == kInvalidParams && !call.error().message.empty());
  }
  if (const auto call = decode_init_call(params); !call) {
    require(call.error().code == kInvalidParams && !call.error().message.empty());
  }
}

/// A server of these functions without its transports.
class World {
 public:
  World() { add_engine_methods(definition_, engine_, {.model_path = "/models/a.rkllm"}); }

  /// One call of a client that has a connection of its own, or that shares its name with others.
  void call(std::string_view method, const json::object& params, bool has_connection) {
    const Principal principal{.id = has_connection ? "alice" : "127.0.0.1",
                              .isolated = has_connection};
    const MethodCaller caller{.principal = principal,
                              .storage = [&] { return has_connection ? storage_ : nullptr; }};
    if (const auto found = definition_.functions.find(method);
        found != definition_.functions.end()) {
      int answers = 0;
      found->second({.params = params,
                     .caller = caller,
                     .memory = manager_.memory_of(principal.id),
                     .home = executor_},
                    [&answers](const Result<std::string>& answer) {
                      ++answers;
                      check_answer(answer);
                    });
      executor_.run();
      require(answers == 1);
      return;
    }
    for (const StreamMethod& each : definition_.stream_methods) {
      if (each.name == method) run(each, params, caller);
    }
  }

 private:
  void run(const StreamMethod& method, const json::object& params, const MethodCaller& caller) {
    const auto stream =
        manager_.start({.principal = caller.principal.id, .method = method.name.c_str()});
    require(stream.has_value());
    if (const Result<void> started = method.handler(params, caller, *stream); !started) {
      check_answer(std::unexpected(started.error()));
    } else {
      executor_.run();
      require((*stream)->ended());
    }
    manager_.discard(**stream);
  }

  ManualExecutor executor_;
  StreamPolicy policy_{{}, std::size_t{64} << 20U, 64, 64};
  StreamManager manager_{executor_, policy_, 0, 1};
  std::shared_ptr<SessionStorage> storage_ = std::make_shared<SessionStorage>();
  CheckingEngine engine_;
  ServerDefinition definition_;
};

}  // namespace

/// Each line is the name of a method, a blank, and its parameters. A name after `~` is called by a
/// client without a connection.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  World world;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const bool has_connection = !line.starts_with('~');
    if (!has_connection) line.remove_prefix(1);
    const std::size_t blank = std::min(line.find(' '), line.size());
    const Result<json::value> params = parse_json(line.substr(std::min(blank + 1, line.size())));
    if (!params || !params->is_object()) continue;
    check_decoders(params->get_object());
    world.call(line.substr(0, blank), params->get_object(), has_connection);
  }
  return 0;
}

#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/events/run_events.hpp"
#include "agent/run/agent_run.hpp"
#include "core/manual_executor.hpp"
#include "engine/engine.hpp"

namespace sluice {

/// A model that says what a test lets it say.
class FakeModel final : public Engine {
 public:
  struct Asked {
    GenerationRequest request;
    std::shared_ptr<GenerationSink> sink;  // null once it has been completed
    bool is_cancelled = false;
    bool is_full = false;
    int resumed = 0;
    Usage told = {};  // before it is cancelled
  };

  Result<std::unique_ptr<Generation>> start(GenerationRequest request,
                                            std::shared_ptr<GenerationSink> sink,
                                            Executor& home) override {
    if (refuses) return fail(kBusy, "too many requests");
    auto one = std::make_shared<Asked>();
    one->request = std::move(request);
    one->sink = std::move(sink);
    asked.push_back(one);
    if (on_asked) on_asked(*one);
    return std::make_unique<Handle>(one, home);
  }
  [[nodiscard]] EngineInfo info() const override {
    return {.engine = "fake", .model = "fake", .alternates = alternates};
  }
  [[nodiscard]] EngineStats stats() const override { return {}; }
  void shutdown() override {}

  static constexpr std::uint32_t kPromptTokens = 10;  // of each answer

  [[nodiscard]] Asked& last() { return *asked.back(); }
  void say(std::string text) { deliver({.kind = Delta::Kind::text, .text = std::move(text)}); }
  void think(std::string text) {
    deliver({.kind = Delta::Kind::reasoning, .text = std::move(text)});
  }
  void call(std::string_view tool, json::object arguments = {}, std::string_view id = {}) {
    const json::object one{{"name", tool}, {"arguments", arguments}};
    const auto head = std::make_shared<CallHead>(std::string(id), std::string(tool));
    if (last().request.stream_calls && streams_calls) {
      const std::string text = to_json(arguments);
      const std::size_t half = text.size() / 2;
      deliver({.kind = Delta::Kind::tool_call_part, .text = text.substr(0, half), .call = head});
      deliver({.kind = Delta::Kind::tool_call_part, .text = text.substr(half), .call = head});
    }
    deliver({.kind = Delta::Kind::tool_call, .text = to_json(one), .call = head});
  }
  /// A part of a call that is not whole.
  void part(std::string_view tool, std::string text) {
    deliver({.kind = Delta::Kind::tool_call_part,
             .text = std::move(text),
             .call = std::make_shared<CallHead>("part", std::string(tool))});
  }
  /// A call whose arguments are no object.
  void call_with_text(std::string_view tool, std::string_view arguments) {
    deliver({.kind = Delta::Kind::tool_call,
             .text = to_json(json::object{{"name", tool}, {"arguments", arguments}}),
             .call = std::make_shared<CallHead>("text", std::string(tool))});
  }
  void end(Completion::Reason reason = Completion::Reason::stop, std::uint32_t tokens = 1) {
    Completion completion;
    completion.reason = reason;
    completion.usage = {.prompt_tokens = kPromptTokens, .completion_tokens = tokens};
    if (reason == Completion::Reason::error) completion.error = Error{502, "it is gone"};
    completion.server_data = server_data;
    if (const auto sink = std::exchange(last().sink, nullptr)) sink->on_complete(completion);
  }

  /// As a model's server that does not take the request.
  void refuse() {
    Completion completion;
    completion.reason = Completion::Reason::error;
    completion.error = Error{-32602, "it takes no images"};
    if (const auto sink = std::exchange(last().sink, nullptr)) sink->on_complete(completion);
  }

  std::vector<std::shared_ptr<Asked>> asked;
  std::function<void(Asked&)> on_asked;
  bool refuses = false;
  bool alternates = false;
  bool streams_calls = false;
  std::string server_data;  // of each answer

 private:
  class Handle final : public Generation {
   public:
    Handle(std::shared_ptr<Asked> asked, Executor& home) : asked_(std::move(asked)), home_(&home) {}
    ~Handle() override {
      // A loop that is being destroyed takes nothing more.
      if (asked_->sink != nullptr) cancel();
    }
    void cancel() override {
      if (std::exchange(asked_->is_cancelled, true)) return;
      home_->post([asked = asked_] {
        Completion completion;
        completion.reason = Completion::Reason::cancelled;
        completion.usage = asked->told;
        if (const auto sink = std::exchange(asked->sink, nullptr)) sink->on_complete(completion);
      });
    }
    void resume() override {
      asked_->is_full = false;
      ++asked_->resumed;
    }
    [[nodiscard]] GenerationStatus status() const override { return {}; }
    [[nodiscard]] bool keeps_sequence() const override {
      return asked_->request.keeps_sequence && asked_->sink == nullptr;
    }

   private:
    std::shared_ptr<Asked> asked_;
    Executor* home_;
  };

  void deliver(Delta delta) {
    if (last().sink != nullptr) last().is_full = !last().sink->on_delta(std::move(delta));
  }
};

/// Tools that do what a test lets them do.
class FakeTools final : public ToolHost {
 public:
  struct Running {
    std::string tool;
    json::object arguments;
    std::string task;
    json::object meta;
    std::shared_ptr<ToolCallSink> sink;
    bool is_dropped = false;
    bool is_paused = false;
    std::string position;
    bool is_left = false;
    TimePoint asked_until{};
  };

  [[nodiscard]] const std::vector<AgentTool>& tools() const override { return offered; }
  [[nodiscard]] ToolPlace place_of(const AgentTool& tool) const override {
    const auto first = std::ranges::find(offered, tool.server, &AgentTool::server);
    return {server == nullptr ? &*first : server, tool.name};
  }
  [[nodiscard]] std::string_view identity_of(const AgentTool& tool) const override {
    return tool.server;
  }
  std::unique_ptr<ToolCall> start(const AgentTool& tool, ToolRequest request,
                                  std::shared_ptr<ToolCallSink> sink) override {
    auto one = std::make_shared<Running>();
    one->tool = tool.name;
    one->arguments = std::move(request.arguments);
    one->task = std::move(request.task);
    one->position = std::move(request.position);
    one->meta = std::move(request.meta);
    one->sink = std::move(sink);
    started.push_back(one);
    return std::make_unique<Handle>(one);
  }

  void write(std::size_t call, std::string text) {
    if (!started[call]->is_dropped) started[call]->sink->on_output({.text = std::move(text)});
  }
  void end(std::size_t call, std::string text,
           ToolEnd::Status status = ToolEnd::Status::completed) {
    if (!started[call]->is_dropped) {
      started[call]->sink->on_end({.status = status, .text = std::move(text)});
    }
  }

  const void* server = nullptr;  // that has all tools; null: those that their labels say
  std::vector<AgentTool> offered = {{.name = "stream"}, {.name = "other", .server = "there"}};
  std::vector<std::shared_ptr<Running>> started;

 private:
  class Handle final : public ToolCall {
   public:
    explicit Handle(std::shared_ptr<Running> running) : running_(std::move(running)) {}
    ~Handle() override { running_->is_dropped = true; }
    void pause(bool is_paused) override { running_->is_paused = is_paused; }
    void leave() override { running_->is_left = true; }
    [[nodiscard]] TimePoint asked_until() const override { return running_->asked_until; }

   private:
    std::shared_ptr<Running> running_;
  };
};

inline AgentOptions reacting(ReactionPolicy::When when) {
  AgentOptions options;
  options.policy.when = when;
  return options;
}

/// A run with both, on a loop that a test moves by hand.
struct RunBench {
  explicit RunBench(AgentOptions options = {}, RunEventsOptions queue = {})
      : events(queue), run(std::make_shared<AgentRun>(loop, events, agent_of(std::move(options)))) {
    events.on_room([this](const std::string& call_id) {
      loop.post([this, call_id] {
        if (run != nullptr) run->on_room(call_id);
      });
    });
  }

  /// The agent of a run, with the model and tools of this.
  RunAgent agent_of(AgentOptions options) {
    options.explains_updates = false;
    return {.engine = &model,
            .reaction_engine = reaction_model,
            .tools = &tools,
            .options = std::move(options),
            .handoffs = [this] { return handoffs ? handoffs() : std::vector<RunHandoff>(); }};
  }
  void start(std::string input = "go") {
    run->start(std::move(input));
    loop.run();
  }
  /// Takes what there is.
  std::vector<AgentEvent> take() {
    loop.run();
    std::vector<AgentEvent> out;
    while (auto event = events.poll()) out.push_back(*std::move(event));
    loop.run();
    return out;
  }
  /// The names of the events, without those of the model's answers.
  std::vector<std::string> names() {
    std::vector<std::string> out;
    for (const AgentEvent& event : take()) {
      if (const auto name = name_of(event.type); name.starts_with("sluice:")) {
        out.emplace_back(name.substr(7));
      }
    }
    return out;
  }
  [[nodiscard]] const std::vector<ChatMessage>& shown() { return model.last().request.messages; }

  ManualExecutor loop;
  FakeModel model;
  Engine* reaction_model = nullptr;  // null: `model`
  FakeTools tools;
  std::function<std::vector<RunHandoff>()> handoffs;
  RunEvents events;
  std::shared_ptr<AgentRun> run;
};

}  // namespace sluice

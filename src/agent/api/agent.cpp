#include "sluice/agent.hpp"

#include <chrono>
#include <functional>
#include <utility>

#include "agent/api/agent_state.hpp"
#include "agent/api/run_state.hpp"
#include "core/clock.hpp"
#include "json/json.hpp"
#include "net/http/status_codes.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

TraceContext traced_by(const TraceContext* parent) {
  return parent == nullptr ? TraceContext() : *parent;
}

}  // namespace

Run::Run(std::shared_ptr<detail::RunState> state) : state_(std::move(state)) {}
Run::~Run() = default;
Run::Run(Run&&) noexcept = default;
Run& Run::operator=(Run&&) noexcept = default;

const std::string& Run::id() const {
  return state_->id();
}

json::object Run::snapshot() const {
  return state_->snapshot();
}

std::optional<AgentEvent> Run::next() {
  while (!is_over()) {
    if (auto event = state_->wait(kForever)) return event;
  }
  return std::nullopt;
}

std::optional<AgentEvent> Run::poll() {
  return state_->poll();
}

RunStep Run::step(std::chrono::steady_clock::time_point deadline) {
  if (is_over()) return {.state = RunStep::State::done};
  const auto left = deadline - std::chrono::steady_clock::now();
  auto event = left > left.zero() ? state_->wait(at_most_forever(left)) : poll();
  const auto state = event ? RunStep::State::event : RunStep::State::idle;
  return {.state = state, .event = std::move(event)};
}

void Run::on_next(std::function<void()> told) {
  state_->on_next(std::move(told), nullptr);
}

Task<std::optional<AgentEvent>> Run::next(RequestLoop& loop) {
  /// Nobody is told any more once the coroutine has gone.
  struct Wait {
    explicit Wait(std::shared_ptr<detail::RunState> of) : state(std::move(of)) {}
    ~Wait() { state->events().forget_next(this); }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;
    std::shared_ptr<detail::RunState> state;
  };
  while (!is_over()) {
    if (auto event = poll()) co_return event;
    const Wait wait(state_);
    co_await loop.callback<void>([&wait](Resolver<void> resolver) {
      wait.state->on_next([resolver]() mutable { resolver.succeed(); }, &wait);
    });
  }
  co_return std::nullopt;
}

RunResult Run::result() {
  while (next()) {
  }
  return state_->result();
}

bool Run::is_over() const {
  return state_->events().is_over();
}

json::object Run::to_object(const AgentEvent& event) const {
  return sluice::to_object(event, id());
}

std::string Run::inject(AgentInput input, RunInput::When when) {
  return state_->inject({.text = input.text(), .when = when, .images = input.images()});
}

void Run::cancel_call(std::string_view call_id) {
  state_->cancel_call(call_id);
}

void Run::cancel_turn() {
  state_->cancel_turn();
}

void Run::cancel() {
  state_->cancel();
}

void Run::set_policy(std::string_view call_id, ReactionPolicy policy) {
  state_->set_policy(call_id, std::move(policy));
}

void Run::approve(std::string_view call_id) {
  state_->approve(call_id);
}

void Run::reject(std::string_view call_id, std::string_view reason) {
  state_->reject(call_id, reason);
}

Agent::Agent(Model model, AgentOptions options)
    : state_(std::make_shared<detail::AgentState>(std::move(model), std::move(options))) {}

void Agent::add_handoff(const Agent& other, HandoffOptions options) const {
  state_->add_handoff(other.state_, std::move(options));
}

const std::vector<AgentTool>& Agent::tools() const {
  return state_->tools.tools();
}

Run Agent::run(AgentInput input, std::string id, const TraceContext* parent) const {
  return Run(std::make_shared<detail::RunState>(
      state_, detail::RunState::Begin{
                  .id = std::move(id), .input = std::move(input), .parent = traced_by(parent)}));
}

Run Agent::resume(const std::string& id, std::optional<AgentInput> input,
                  const TraceContext* parent) const {
  const KeptRun kept = state_->store == nullptr ? KeptRun() : state_->store->store().load(id);
  if (kept.version == 0) throw Error{kNotFound, "There is no run " + id, {}};
  const Result<json::value> state = parse_json(kept.state);
  if (!state || !state->is_object()) {
    throw Error{kInvalidParams, "The kept state of the run is broken: it is no JSON object", {}};
  }
  return Run(std::make_shared<detail::RunState>(
      state_, detail::RunState::Begin{.id = id,
                                      .input = std::move(input),
                                      .state = state->get_object(),
                                      .version = kept.version,
                                      .parent = traced_by(parent)}));
}

Run Agent::resume(const json::object& snapshot, std::optional<AgentInput> input,
                  const TraceContext* parent) const {
  return Run(std::make_shared<detail::RunState>(
      state_, detail::RunState::Begin{
                  .input = std::move(input), .state = snapshot, .parent = traced_by(parent)}));
}

}  // namespace sluice

#include "agent/api/run_state.hpp"

#include <cstddef>
#include <stdexcept>
#include <utility>

#include "core/crypto/random.hpp"

namespace sluice::detail {
namespace {

constexpr std::size_t kRunIdLength = 16;

void require(const Result<void>& outcome) {
  if (!outcome) throw Error(outcome.error());
}

}  // namespace

RunState::RunState(std::shared_ptr<AgentState> agent, std::string input)
    : agent_(std::move(agent)),
      id_("run_" + random_id(kRunIdLength)),
      events_(agent_->options.events) {
  EventLoop& loop = agent_->background->loop();
  run_ = std::make_shared<AgentRun>(loop, *agent_->model.engine(), agent_->tools, events_,
                                    agent_->options);
  events_.on_room([&loop, weak = std::weak_ptr(run_)](const std::string& call_id) {
    loop.post([weak, call_id] {
      if (const auto run = weak.lock()) run->on_room(call_id);
    });
  });
  loop.post([run = run_, input = std::move(input)]() mutable { run->start(std::move(input)); });
}

RunState::~RunState() {
  EventLoop& loop = agent_->background->loop();
  if (loop.on_loop_thread()) {
    run_.reset();
  } else {
    on_loop([this] { run_.reset(); });
  }
}

void RunState::require_other_thread() const {
  if (agent_->background->loop().on_loop_thread()) {
    throw std::logic_error("a callback of a client must not wait for a run");
  }
}

void RunState::note(const AgentEvent& last) {
  const auto text = [&last](std::string_view member) {
    const json::value* const value = last.data.if_contains(member);
    return value != nullptr && value->is_string() ? std::string(value->get_string())
                                                  : std::string();
  };
  const std::lock_guard lock(mutex_);
  result_ = {.status = text("status"), .reason = text("reason"), .text = last.text};
  const json::value* const usage = last.data.if_contains("usage");
  if (usage != nullptr && usage->is_object()) result_->usage = usage->get_object();
}

std::optional<AgentEvent> RunState::poll() {
  return noted(events_.poll());
}

std::optional<AgentEvent> RunState::wait(Duration patience) {
  if (patience > Duration::zero()) require_other_thread();
  return noted(events_.wait(patience));
}

std::optional<AgentEvent> RunState::noted(std::optional<AgentEvent> event) {
  if (event && event->type == AgentEventType::run_done) note(*event);
  return event;
}

RunResult RunState::result() const {
  const std::lock_guard lock(mutex_);
  return result_.value_or(RunResult());
}

std::string RunState::inject(RunInput input) {
  Result<std::string> id = on_loop([&] { return run_->inject(std::move(input)); });
  if (!id) throw Error(std::move(id.error()));
  return *std::move(id);
}

void RunState::cancel_call(std::string_view call_id) {
  require(on_loop([&] { return run_->cancel_call(call_id); }));
}

void RunState::cancel_turn() {
  on_loop([&] { run_->cancel_turn(); });
}

void RunState::cancel() {
  on_loop([&] { run_->cancel(); });
}

void RunState::approve(std::string_view call_id) {
  require(on_loop([&] { return run_->approve(call_id); }));
}

void RunState::reject(std::string_view call_id, std::string_view reason) {
  require(on_loop([&] { return run_->reject(call_id, reason); }));
}

}  // namespace sluice::detail

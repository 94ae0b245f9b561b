#include "agent/run/hosted_run.hpp"

#include <utility>

namespace sluice {

HostedRun::HostedRun(Executor& loop, Engine& engine, ToolHost& tools,
                     const AgentRunOptions& options, const RunEventsOptions& events)
    : loop_(&loop), events_(events) {
  on_loop([&] { run_ = std::make_shared<AgentRun>(loop, engine, tools, events_, options); });
  events_.on_room([this](const std::string& call_id) {
    loop_->post([weak = std::weak_ptr(run_), call_id] {
      if (const auto run = weak.lock()) run->on_room(call_id);
    });
  });
}

HostedRun::~HostedRun() {
  on_loop([this] { run_.reset(); });
}

void HostedRun::start(std::string input) {
  on_loop([&] { run_->start(std::move(input)); });
}

Result<std::string> HostedRun::inject(RunInput input) {
  return on_loop([&] { return run_->inject(std::move(input)); });
}

Result<void> HostedRun::cancel_call(std::string_view call_id) {
  return on_loop([&] { return run_->cancel_call(call_id); });
}

Result<void> HostedRun::approve(std::string_view call_id) {
  return on_loop([&] { return run_->approve(call_id); });
}

Result<void> HostedRun::reject(std::string_view call_id, std::string_view reason) {
  return on_loop([&] { return run_->reject(call_id, reason); });
}

void HostedRun::cancel_turn() {
  on_loop([&] { run_->cancel_turn(); });
}

void HostedRun::cancel() {
  on_loop([&] { run_->cancel(); });
}

}  // namespace sluice

#include "agent/api/run_state.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/crypto/random.hpp"
#include "core/log/log.hpp"
#include "core/log/log_limit.hpp"
#include "json/json.hpp"
#include "json/members.hpp"
#include "rpc/error_codes.hpp"

namespace sluice::detail {
namespace {

constexpr std::size_t kRunIdLength = 16;

void require(const Result<void>& outcome) {
  if (!outcome) throw Error(outcome.error());
}

/// Drops `agents` on a thread of its own.
void drop_elsewhere(std::vector<std::shared_ptr<const void>> agents) {
  try {
    std::thread([agents = std::move(agents)] {}).detach();
  } catch (const std::system_error& error) {
    log_warning("there is no thread on which an agent could end",
                {{"error", std::string_view(error.what())}});
  }
}

}  // namespace

/// Brings states to the thread of the store. Belongs to the loop.
class RunState::Keeper final : public StateKeeper {
 public:
  Keeper(EventLoop& loop, StoreThread& store, std::string run_id, std::uint64_t version)
      : loop_(&loop),
        store_(&store),
        run_id_(std::move(run_id)),
        version_(std::make_shared<std::uint64_t>(version)) {}

  void keep(json::object state, std::function<void(const Result<void>&)> done) override {
    store_->save(run_id_, std::move(state), *version_,
                 [loop = loop_, version = version_,
                  done = std::move(done)](const Result<std::uint64_t>& saved) {
                   loop->post([version, done, saved] {
                     if (saved) *version = *saved;
                     done(saved ? Result<void>() : std::unexpected(saved.error()));
                   });
                 });
  }

 private:
  EventLoop* loop_;
  StoreThread* store_;
  std::string run_id_;
  std::shared_ptr<std::uint64_t> version_;  // the loop's
};

RunState::RunState(std::shared_ptr<AgentState> agent, Begin begin)
    : agent_(std::move(agent)),
      id_(begin.id.empty() ? "run_" + random_id(kRunIdLength) : std::move(begin.id)),
      events_(agent_->options.events) {
  EventLoop& loop = agent_->background->loop();
  run_ = std::make_shared<AgentRun>(loop, events_, agent_->for_run());
  if (agent_->store != nullptr) {
    keeper_ = std::make_unique<Keeper>(loop, *agent_->store, id_, begin.version);
    run_->keep_with(*keeper_);
  }
  if (agent_->options.spans != nullptr || !begin.parent.traceparent.empty()) {
    spans_ = std::make_unique<RunSpans>(agent_->options.spans, begin.parent, id_, loop.clock(),
                                        std::chrono::system_clock::now());
    run_->trace_with(*spans_);
    events_.watch([this](const AgentEvent& event) { spans_->on_event(event); });
  }
  events_.on_room([&loop, weak = std::weak_ptr(run_)](const std::string& call_id) {
    loop.post([weak, call_id] {
      if (const auto run = weak.lock()) run->on_room(call_id);
    });
  });
  if (begin.state) require(run_->restore(*begin.state));
  if (begin.input) require(run_->check_input(begin.input->text(), begin.input->images()));
  loop.post([run = run_, is_new = !begin.state, input = std::move(begin.input)]() mutable {
    is_new ? run->start(*std::move(input)) : run->resume(std::move(input));
  });
}

RunState::~RunState() {
  EventLoop& loop = agent_->background->loop();
  // Agents may wait for their stores when they end, which must not hold the loop up.
  std::vector<std::shared_ptr<const void>> agents{agent_};
  const auto end = [this, &agents] {
    std::ranges::move(run_->agents(), std::back_inserter(agents));
    run_.reset();
    spans_.reset();
    alive_.reset();
  };
  if (loop.on_loop_thread()) {
    end();
    agent_.reset();
    drop_elsewhere(std::move(agents));
  } else {
    on_loop(end);
  }
}

void RunState::require_other_thread() const {
  if (agent_->background->loop().on_loop_thread()) {
    throw std::logic_error("a callback of a client must not wait for a run");
  }
}

std::optional<AgentEvent> RunState::poll() {
  return events_.poll();
}

std::optional<AgentEvent> RunState::wait(Duration patience) {
  if (patience > Duration::zero()) require_other_thread();
  return events_.wait(patience);
}

void RunState::on_next(std::function<void()> told, const void* waiter) {
  const auto wake = [&loop = agent_->background->loop(), alive = std::weak_ptr(alive_),
                     told = std::move(told)]() mutable {
    if (!loop.on_loop_thread()) return told();
    // The run is in the middle of its work, and `told` may do anything, such as destroying it.
    loop.post([alive = std::move(alive), told = std::move(told)] {
      static LogLimit failures;
      if (alive.expired()) return;
      try {
        told();
      } catch (...) {
        log_exception(failures, "what was to be told of a run's next event has failed");
      }
    });
  };
  events_.on_next(wake, waiter);
}

RunResult RunState::result() const {
  const std::optional<AgentEvent> last = events_.last();
  if (!last) return {};
  const json::object* const usage = object_at(last->data, "usage");
  return {.status = std::string(text_at(last->data, "status")),
          .reason = std::string(text_at(last->data, "reason")),
          .text = last->text,
          .usage = usage == nullptr ? json::object() : *usage};
}

json::object RunState::snapshot() {
  return on_loop([this] { return run_->snapshot(); });
}

std::string RunState::inject(RunInput input) {
  Result<std::string> id = on_loop([&] { return run_->inject(std::move(input)); });
  if (!id) throw Error(std::move(id.error()));
  return *std::move(id);
}

void RunState::cancel_call(std::string_view call_id) {
  require(on_loop([&] { return run_->cancel_call(call_id); }));
}

void RunState::tell(void (AgentRun::*what)()) {
  EventLoop& loop = agent_->background->loop();
  if (!loop.on_loop_thread()) return on_loop([&] { (run_.get()->*what)(); });
  loop.post([weak = std::weak_ptr(run_), what] {
    if (const auto run = weak.lock()) (run.get()->*what)();
  });
}

void RunState::set_policy(std::string_view call_id, ReactionPolicy policy) {
  require(on_loop([&] { return run_->set_policy(call_id, std::move(policy)); }));
}

void RunState::approve(std::string_view call_id) {
  require(on_loop([&] { return run_->approve(call_id); }));
}

void RunState::reject(std::string_view call_id, std::string_view reason) {
  require(on_loop([&] { return run_->reject(call_id, reason); }));
}

}  // namespace sluice::detail

// sluice/concurrency.hpp.

#include "sluice/concurrency.hpp"

#include <optional>
#include <stdexcept>
#include <string>

#include "server/handlers/branch.hpp"
#include "sluice/error.hpp"

namespace sluice::detail {

/// One task of a group.
class TaskGroup::Member final : public Branch,
                                public EndWatcher,
                                public std::enable_shared_from_this<Member> {
 public:
  Member(State& group, std::coroutine_handle<> coroutine);
  ~Member() { destroy(); }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  /// Whether it has neither ended nor been given up.
  [[nodiscard]] bool runs() const { return !ended_; }
  /// Runs it until it suspends or ends.
  void start();
  /// Destroys it where it is suspended, as soon as no worker uses it.
  void give_up();

  std::coroutine_handle<> on_end(const std::exception_ptr& failure) noexcept override;

 private:
  void destroy() {
    if (coroutine_) std::exchange(coroutine_, nullptr).destroy();
  }

  State* group_;
  std::coroutine_handle<> coroutine_;
  bool ended_ = false;
};

struct TaskGroup::State {
  State() : outer(running_branch()) {
    if (outer == nullptr) {
      throw std::logic_error("when_all() and with_timeout() are for coroutines of a request");
    }
  }
  ~State() { cancel_timer(); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// Records the first failure, and gives up the other tasks.
  void fail(std::exception_ptr why);
  void on_timeout();
  /// The coroutine to resume on the branch `outer` after a task has ended: the awaiter if no task
  /// is left, otherwise null.
  std::coroutine_handle<> next() { return left > 0 ? nullptr : std::exchange(awaiter, nullptr); }
  void go_on() {
    if (const auto ready = next()) outer->loop().resume(ready, outer);
  }
  void cancel_timer() {
    if (timer != 0) outer->loop().cancel(std::exchange(timer, 0));
  }

  Branch* outer;
  std::vector<std::shared_ptr<Member>> members;
  std::optional<std::chrono::nanoseconds> timeout;
  std::coroutine_handle<> awaiter;  // set while it is suspended
  std::size_t left = 0;
  std::uint64_t timer = 0;
  std::exception_ptr failure;
};

TaskGroup::Member::Member(State& group, std::coroutine_handle<> coroutine)
    : Branch(group.outer->loop(), group.outer), group_(&group), coroutine_(coroutine) {}

void TaskGroup::Member::start() {
  Branch* const before = enter(this);
  coroutine_.resume();
  enter(before);
}

void TaskGroup::Member::give_up() {
  ended_ = true;
  const bool unused = stop([weak = weak_from_this(), mailbox = loop().mailbox()] {
    mailbox->post([weak] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      State& group = *self->group_;
      self->destroy();
      --group.left;
      group.go_on();
    });
  });
  if (!unused) return;
  destroy();
  --group_->left;
}

std::coroutine_handle<> TaskGroup::Member::on_end(const std::exception_ptr& failure) noexcept {
  ended_ = true;
  --group_->left;
  if (failure) group_->fail(failure);
  const std::coroutine_handle<> ready = group_->next();
  if (!ready) return std::noop_coroutine();
  enter(group_->outer);
  return ready;
}

void TaskGroup::State::fail(std::exception_ptr why) {
  failure = std::move(why);
  cancel_timer();
  for (const auto& member : members) {
    if (member->runs()) member->give_up();
  }
}

void TaskGroup::State::on_timeout() {
  timer = 0;
  if (outer->stopped()) return;
  fail(std::make_exception_ptr(Error{kTimedOut, "It took longer than it may", {}}));
  go_on();
}

TaskGroup::TaskGroup() : state_(std::make_unique<State>()) {}

TaskGroup::~TaskGroup() = default;

void TaskGroup::add(std::coroutine_handle<> coroutine, PromiseBase& promise) {
  if (state_->members.size() == kMaxConcurrentTasks) {
    throw Error{kLimitReached,
                "At most " + std::to_string(kMaxConcurrentTasks) + " things may be done at once",
                {}};
  }
  state_->members.push_back(nullptr);
  state_->members.back() = std::make_shared<Member>(*state_, coroutine);
  promise.set_watcher(*state_->members.back());
}

void TaskGroup::set_timeout(std::chrono::nanoseconds timeout) {
  state_->timeout = timeout;
}

bool TaskGroup::await_ready() const noexcept {
  return state_->members.empty();
}

std::coroutine_handle<> TaskGroup::await_suspend(AwaiterHandle awaiter) {
  State& state = *state_;
  state.left = state.members.size();
  if (state.timeout) {
    state.timer = state.outer->loop().after(*state.timeout, [&state] { state.on_timeout(); });
  }
  for (const auto& member : state.members) {
    if (member->runs()) member->start();
  }
  if (state.left == 0) return awaiter;
  state.awaiter = awaiter;
  return std::noop_coroutine();
}

void TaskGroup::await_resume() const {
  if (state_->failure) std::rethrow_exception(state_->failure);
}

}  // namespace sluice::detail

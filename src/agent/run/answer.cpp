#include "agent/run/answer.hpp"

namespace sluice {

/// Takes what the engine says on whatever thread, and passes it on in the loop's turns. Shared with
/// the engine, which may have it longer.
class Answer::Sink final : public GenerationSink, public std::enable_shared_from_this<Sink> {
 public:
  Sink(Owner& owner, Executor& loop) : owner_(&owner), loop_(&loop) {}

  bool on_delta(Delta delta) override {
    const std::lock_guard lock(mutex_);
    if (loop_ == nullptr) return true;
    waiting_.push_back(std::move(delta));
    post();
    is_stopped_ = is_full_ || waiting_.size() >= kMaxWaiting;
    return !is_stopped_;
  }
  void on_complete(Completion completion) override {
    const std::lock_guard lock(mutex_);
    if (loop_ == nullptr) return;
    completion_ = std::move(completion);
    post();
  }

  /// On the loop, which may end before the engine does. Nothing is passed on any more.
  void leave() {
    owner_ = nullptr;
    const std::lock_guard lock(mutex_);
    loop_ = nullptr;
  }
  /// On the loop: the owner has room. Returns whether the engine waits for that.
  bool open() {
    const std::lock_guard lock(mutex_);
    is_full_ = false;
    return waiting_.empty() && std::exchange(is_stopped_, false);
  }
  /// On the loop: what to call when the engine may go on.
  std::function<void()> resume;

 private:
  static constexpr std::size_t kMaxWaiting = 256;

  void post() {
    if (std::exchange(is_posted_, true)) return;
    loop_->post([self = shared_from_this()] { self->pass_on(); });
  }

  void pass_on() {
    std::deque<Delta> deltas;
    std::optional<Completion> completion;
    {
      const std::lock_guard lock(mutex_);
      is_posted_ = false;
      deltas.swap(waiting_);
      completion = std::exchange(completion_, std::nullopt);
    }
    bool goes_on = true;
    for (const Delta& delta : deltas) {
      if (owner_ == nullptr) return;
      goes_on = owner_->on_delta(delta);
    }
    if (owner_ == nullptr) return;
    if (completion) return std::exchange(owner_, nullptr)->on_complete(*completion);
    bool wakes = false;
    {
      const std::lock_guard lock(mutex_);
      is_full_ = !goes_on;
      wakes = goes_on && waiting_.empty() && std::exchange(is_stopped_, false);
    }
    if (wakes && resume) resume();
  }

  Owner* owner_;
  Executor* loop_;  // null once nobody listens
  std::mutex mutex_;
  std::deque<Delta> waiting_;
  std::optional<Completion> completion_;
  bool is_full_ = false;     // the owner
  bool is_stopped_ = false;  // the engine, until it is told to go on
  bool is_posted_ = false;
};

Answer::Answer(Owner& owner, Executor& loop, ResponseWriter response)
    : writer(std::move(response)), loop_(&loop), sink_(std::make_shared<Sink>(owner, loop)) {
  sink_->resume = [this] {
    if (generation_ != nullptr) generation_->resume();
  };
}

Answer::~Answer() {
  sink_->leave();
  sink_->resume = nullptr;
}

void Answer::start(Engine& engine, GenerationRequest request) {
  auto begun = engine.start(std::move(request), sink_, *loop_);
  if (begun) {
    generation_ = *std::move(begun);
  } else {
    Completion failed;
    failed.reason = Completion::Reason::error;
    failed.error = std::move(begun.error());
    sink_->on_complete(std::move(failed));
  }
}

void Answer::cancel() {
  if (std::exchange(is_cancelled_, true)) return;
  if (generation_ != nullptr) generation_->cancel();
}

void Answer::resume() {
  if (sink_->open() && generation_ != nullptr) generation_->resume();
}

}  // namespace sluice

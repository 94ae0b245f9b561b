#include "server/tasks/task_result.hpp"

#include <utility>

namespace sluice {
namespace {

/// One `tasks/result` that waits. Keeps itself alive until it is answered or its caller has gone.
class ResultWaiter final : public TaskObserver,
                           public StreamProducer,
                           public std::enable_shared_from_this<ResultWaiter> {
 public:
  ResultWaiter(std::shared_ptr<PendingRequest> call, std::shared_ptr<TaskRecord> task)
      : call_(std::move(call)), task_(std::move(task)) {}

  Result<void> start() {
    if (Result<void> added = task_->observe(call_->executor(), weak_from_this()); !added) {
      return added;
    }
    self_ = shared_from_this();
    call_->set_producer(this);
    on_task_change();
    return {};
  }

  void on_task_change() override {
    if (self_ == nullptr) return;
    if (const std::optional<std::string> outcome = task_->outcome()) {
      const std::shared_ptr<ResultWaiter> keep = std::move(self_);
      call_->set_producer(nullptr);
      call_->answer_with(R"({"jsonrpc":"2.0","id":)" + call_->id() + *outcome + "}");
      return;
    }
    // The question was answered elsewhere or withdrawn.
    if (question_ != nullptr && !task_->is_open(question_)) {
      question_ = nullptr;
      if (auto withdraw = std::exchange(withdraw_, {})) withdraw();
      if (call_->over()) return;
    }
    // Questions are asked one after the other, because a call asks one at a time.
    if (question_ == nullptr) put_question();
  }

  void on_task_message(const std::string& message) override {
    // A client that does not keep up misses some of them.
    if (self_ != nullptr && writable_) writable_ = call_->send(message);
  }

  void on_writable() override { writable_ = true; }
  void on_cancel() override {
    const std::shared_ptr<ResultWaiter> keep = std::move(self_);
    // Another waiter may ask the question, now or later.
    if (const auto question = std::exchange(question_, nullptr)) task_->give_back(question);
  }

 private:
  void put_question() {
    question_ = task_->take_question(shared_from_this(), [this](const auto& requests) {
      return !call_->cannot_ask(requests).has_value();
    });
    if (question_ == nullptr) return;
    withdraw_ = call_->ask(question_->asked.requests(),
                           [weak = weak_from_this(), task = task_,
                            question = question_](Result<std::vector<json::value>> answers) {
                             task->answer(question, std::move(answers));
                             if (const auto self = weak.lock()) self->on_task_change();
                           });
    if (call_->over()) on_cancel();  // it could not be asked after all
  }

  std::shared_ptr<PendingRequest> call_;
  std::shared_ptr<TaskRecord> task_;
  std::shared_ptr<const TaskQuestion> question_;  // what the client is being asked
  PendingRequest::Withdraw withdraw_;             // withdraws it
  std::shared_ptr<ResultWaiter> self_;
  bool writable_ = true;
};

}  // namespace

Result<void> await_task_result(const std::shared_ptr<PendingRequest>& call,
                               const std::shared_ptr<TaskRecord>& task) {
  return std::make_shared<ResultWaiter>(call, task)->start();
}

}  // namespace sluice

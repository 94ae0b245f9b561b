#include "client/answer_client.hpp"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "client/answer_connection.hpp"
#include "net/client/http_client.hpp"
#include "net/loop/event_loop.hpp"

namespace sluice {

struct AnswerClient::State {
  explicit State(ServerAddress to)
      : address(std::move(to)), http(std::in_place, loop, answer_http_options(address)) {}

  /// Runs `work` on the loop's thread and waits for it.
  template <class Work>
  void on_loop(Work work) {
    std::mutex mutex;
    std::condition_variable finished;
    bool done = false;
    loop.post([&] {
      work();
      // Notify while holding the lock: the mutex and the condition variable are destroyed as soon
      // as the waiter sees `done`.
      const std::lock_guard lock(mutex);
      done = true;
      finished.notify_one();
    });
    std::unique_lock lock(mutex);
    finished.wait(lock, [&] { return done; });
  }

  ServerAddress address;
  EventLoop loop;
  std::optional<HttpClient> http;
  std::thread thread;
};

class AnswerClient::Asked final : public PendingAnswer {
 public:
  Asked(State& state, AnswerVia via, AnswerRequest request, AnswerSink& sink) : state_(&state) {
    state_->on_loop([&] {
      connection_.emplace(state_->loop, *state_->http, state_->address);
      machine_ = make_answer(via, std::move(request), *connection_, sink);
      connection_->set_machine(machine_.get());
      machine_->start();
    });
  }
  ~Asked() override {
    state_->on_loop([this] {
      connection_->close();
      machine_ = nullptr;
      connection_.reset();
    });
  }
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;

  void cancel() override {
    state_->on_loop([this] { machine_->cancel(); });
  }

 private:
  State* state_;
  // Both exist and end only on the loop.
  std::optional<AnswerConnection> connection_;
  std::unique_ptr<AnswerMachine> machine_;
};

AnswerClient::AnswerClient(ServerAddress address)
    : state_(std::make_unique<State>(std::move(address))) {
  state_->thread = std::thread([state = state_.get()] { state->loop.run(); });
}

AnswerClient::~AnswerClient() {
  state_->on_loop([this] { state_->http.reset(); });
  state_->loop.stop();
  state_->thread.join();
}

std::unique_ptr<PendingAnswer> AnswerClient::ask(AnswerVia via, AnswerRequest request,
                                                 AnswerSink& sink) {
  return std::make_unique<Asked>(*state_, via, std::move(request), sink);
}

}  // namespace sluice

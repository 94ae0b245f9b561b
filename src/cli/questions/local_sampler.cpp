#include "cli/questions/local_sampler.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <utility>

#include "cli/questions/terminal_answers.hpp"
#include "cli/terminal/terminal.hpp"
#include "net/loop/event_loop.hpp"
#include "rpc/error_codes.hpp"
#include "sluice/client.hpp"

namespace sluice {
namespace {

constexpr int kUserRejected = -1;
/// How often it is checked whether somebody still waits.
constexpr Duration kStopCheck = std::chrono::milliseconds(100);
constexpr std::size_t kMaxShownRequest = 200;  // bytes

std::unexpected<Error> rejected() {
  return fail(kUserRejected, "User rejected sampling request");
}

/// Collects an answer, and stops the loop at its end.
class SampledText final : public GenerationSink {
 public:
  explicit SampledText(EventLoop& loop) : loop_(&loop) {}
  /// The tokens of the request are limited, so there is always room.
  bool on_delta(Delta delta) override {
    if (delta.kind == Delta::Kind::text) text_.append(delta.text);
    return true;
  }
  void on_complete(Completion completion) override {
    completion_ = std::move(completion);
    loop_->stop();
  }
  // Once the loop has stopped.
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const Completion& completion() const { return completion_; }

 private:
  EventLoop* loop_;
  std::string text_;
  Completion completion_;
};

/// Cancels the generation when nobody waits for it.
void watch_for_end(EventLoop& loop, Generation& generation) {
  loop.schedule_at(loop.clock().now() + kStopCheck, [&loop, &generation] {
    if (question_stop().stop_requested()) return generation.cancel();
    watch_for_end(loop, generation);
  });
}

}  // namespace

LocalSampler::LocalSampler(ServeConfig config, SamplingConsent consent)
    : config_(std::move(config)), consent_(consent) {}

LocalSampler::~LocalSampler() {
  if (engine_) engine_->engine->shutdown();
}

std::string LocalSampler::model_name() const {
  return config_.engine.model.empty()
             ? "the tiny built-in model"
             : std::filesystem::path(config_.engine.model).filename().string();
}

bool LocalSampler::is_allowed(const GenerationRequest& request) {
  const auto user = terminal_user();
  if (consent_ == SamplingConsent::always) {
    const std::string& text = request.messages.empty() ? "" : request.messages.back().content;
    complain("the server asks " + model_name() + ": " +
             shortened(one_line(text), kMaxShownRequest));
    return true;
  }
  if (!user) return false;
  const SamplingConsent said = ask_sampling(request, model_name(), *user);
  if (said == SamplingConsent::always) consent_ = said;
  return said != SamplingConsent::refused;
}

Result<void> LocalSampler::load() {
  if (engine_) return {};
  auto made = make_engine(config_);
  if (!made) return std::unexpected(made.error());
  EngineHandle handle = *std::move(made);
  while (true) {
    const auto is_ready = handle.wait_ready(kStopCheck);
    if (!is_ready) return std::unexpected(is_ready.error());
    if (*is_ready) break;
    if (question_stop().stop_requested()) return rejected();
  }
  engine_ = std::move(handle);
  return {};
}

Result<json::object> LocalSampler::answer(const json::object& params) {
  auto request = sampling_request(params);
  if (!request) return std::unexpected(request.error());
  if (!is_allowed(*request)) return rejected();
  if (const auto loaded = load(); !loaded) {
    if (loaded.error().code == kUserRejected) return std::unexpected(loaded.error());
    complain("the model cannot answer: " + loaded.error().message);
    return fail(kInternalError, "The client's model cannot be loaded");
  }
  return generate(*std::move(request));
}

Result<json::object> LocalSampler::generate(GenerationRequest request) {
  EventLoop loop;
  const auto sink = std::make_shared<SampledText>(loop);
  auto started = engine_->engine->start(std::move(request), sink, loop);
  if (!started) return std::unexpected(started.error());
  watch_for_end(loop, **started);
  loop.run();
  started->reset();
  loop.discard_tasks();
  const Completion& completion = sink->completion();
  if (completion.reason == Completion::Reason::cancelled) return rejected();
  if (completion.error) return fail(kInternalError, completion.error->message);
  if (const auto user = terminal_user()) {
    user->show("It answers: " + printable(sink->text()) + "\n");
  }
  return sampling_result(sink->text(), engine_->engine->info().model, completion.reason);
}

}  // namespace sluice

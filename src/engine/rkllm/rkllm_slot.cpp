#include "engine/rkllm/rkllm_slot.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/log/log.hpp"
#include "engine/rkllm/worker/worker_messages.hpp"
#include "rpc/error_codes.hpp"
#include "sluice/schema.hpp"

namespace sluice::rkllm {
namespace {

/// How long a runtime has to end a run before it is asked again: it takes no notice of what comes
/// before it has begun.
constexpr Duration kAbortPause = std::chrono::milliseconds(250);

/// More than a run takes.
constexpr float kMostMilliseconds = 1e9F;

json::object object_of(const json::value& value) {
  return value.get_object();
}

}  // namespace

RkllmSlot::RkllmSlot(EventLoop& loop, const RkllmOptions& options, const LibraryFacts& library,
                     ModelAssets& assets, PromptCaches* caches, std::uint32_t index, Owner& owner)
    : loop_(&loop),
      options_(&options),
      library_(&library),
      assets_(&assets),
      caches_(caches),
      index_(index),
      owner_(&owner),
      pause_({.first = options.restart_pause,
              .longest = std::chrono::minutes(1),
              .attempts = UINT32_MAX}) {}

std::optional<int> RkllmSlot::returned_by(const Result<json::object>& answer) {
  if (!answer) return std::nullopt;
  const auto result = decode<Returned>(*answer, "result");
  return result ? std::optional<int>(result->returned) : std::nullopt;
}

RkllmSlot::~RkllmSlot() {
  cancel_timer();
}

// --- the process --------------------------------------------------------------------------------

void RkllmSlot::start() {
  phase_ = Phase::loading;
  auto process = WorkerProcess::start(
      *loop_, {.arguments = options_->worker, .environment = options_->environment}, *this);
  if (!process) {
    phase_ = Phase::absent;
    trouble_ = process.error().message;
    return rest();
  }
  process_ = *std::move(process);
  born_ = assets_->last();
  taken_ = 0;
  chooses_tokens_ = false;
  live_owner_.reset();
  set_timer(options_->load_timeout, &RkllmSlot::on_load_late);
  const std::string abi(library_->abi == nullptr ? std::string_view() : library_->abi->name);
  process_->ask(method::kOpen, object_of(encode(OpenParams{.library = library_->path, .abi = abi})),
                [this](const Result<json::object>& answer) {
                  answer ? load() : give_up(answer.error().message);
                });
}

void RkllmSlot::load() {
  if (caches_ != nullptr) model_ = describe_model();
  ModelParams params{.model_path = options_->model_path,
                     .base_domain_id = static_cast<std::int32_t>(index_)};
  if (options_->context_tokens != 0) {
    params.max_context_len = static_cast<std::int32_t>(options_->context_tokens);
  }
  if (options_->chat_template != nullptr && options_->chat_template->needs_special_tokens()) {
    params.skip_special_token = false;
  }
  if (options_->cross_attention) params.use_cross_attn = true;
  process_->ask(method::kInit, object_of(encode(params)),
                [this](const Result<json::object>& answer) {
                  const std::optional<int> result = returned_by(answer);
                  if (result == 0) return set_template();
                  give_up(!answer ? answer.error().message
                          : result == Runtime::kNoHandle
                              ? "the runtime reports success without a model; is the "
                                "file for this board, and of this version?"
                              : "rkllm_init() returned " + std::to_string(result.value_or(0)) +
                                    "; what the runtime has logged says why");
                });
}

void RkllmSlot::set_template() {
  if (options_->chat_template == nullptr) return test_tokens();
  // With empty texts the runtime's own template is off, and its parser (rknn-llm#431).
  process_->ask(method::kSetChatTemplate, object_of(encode(TemplateParams{})),
                [this](const Result<json::object>& answer) {
                  // A version without the function has no template of its own.
                  const bool has_none = !answer && answer.error().code == kMethodNotFound;
                  if (has_none || returned_by(answer) == 0) return test_tokens();
                  give_up(!answer ? answer.error().message
                                  : "rkllm_set_chat_template() returned " +
                                        std::to_string(returned_by(answer).value_or(0)));
                });
}

void RkllmSlot::test_tokens() {
  if (has_died_of_test_) return settle();
  is_testing_ = true;
  set_timer(options_->test_timeout, &RkllmSlot::on_test_late);
  const std::filesystem::path model(options_->model_path);
  process_->ask(
      method::kTestTokens, object_of(encode(TestParams{.folder = model.parent_path().string()})),
      [this](const Result<json::object>& answer) {
        is_testing_ = false;
        chooses_tokens_ = answer.has_value();
        owner_->on_tokens_tested(answer ? Result<void>() : std::unexpected(answer.error()));
        settle();
      });
}

void RkllmSlot::on_test_late() {
  give_up("it takes too long to be tested");
}

void RkllmSlot::settle() {
  cancel_timer();
  const auto [number, step] = assets_->next(taken_, born_);
  if (step == nullptr) {
    if (phase_ == Phase::loading) {
      pause_.reset();
      trouble_.clear();
    }
    phase_ = Phase::idle;
    return owner_->on_slot_changed();
  }
  if (phase_ != Phase::loading) phase_ = Phase::changing;
  taken_ = number;
  takes_step_ = true;
  set_timer(options_->load_timeout, &RkllmSlot::on_step_late);
  process_->ask(step->method, step->params,
                [this](const Result<json::object>& answer) { on_step_taken(answer); });
}

void RkllmSlot::on_step_taken(const Result<json::object>& answer) {
  takes_step_ = false;
  const std::optional<int> result = returned_by(answer);
  assets_->finish(taken_, !answer ? std::unexpected(answer.error())
                          : result == 0
                              ? Result<void>()
                              : fail(kInvalidParams, "The runtime returned " +
                                                         std::to_string(result.value_or(0)) +
                                                         "; what it has logged says why"));
  settle();
}

void RkllmSlot::on_step_late() {
  give_up("it takes too long to load what an operator has named");
}

void RkllmSlot::on_load_late() {
  give_up("it takes too long to load the model");
}

void RkllmSlot::give_up(std::string why) {
  cancel_timer();
  process_->kill();
  // It is not told of its own end.
  process_ = nullptr;
  on_gone(why);
}

void RkllmSlot::on_gone(const std::string& why) {
  process_ = nullptr;
  if (std::exchange(is_testing_, false)) {
    // Without the test it may serve well.
    has_died_of_test_ = true;
    phase_ = Phase::absent;
    owner_->on_tokens_tested(
        fail(kInternalError, "The runtime's process has died of the test: " + why));
    return rest();
  }
  const bool had_model = has_model();
  phase_ = Phase::absent;
  trouble_ = why;
  log_error(had_model ? "the process of the model has died" : "the model cannot be loaded",
            {{"why", std::string_view(why)}, {"slot", static_cast<int>(index_)}});
  const Error death(kInternalError,
                    "The process of the model has died, and another is started: " + why);
  if (std::exchange(takes_step_, false)) assets_->finish(taken_, std::unexpected(death));
  lose_caches();
  rest();
  if (run_ != nullptr) end_run(Completion::Reason::error, death);
}

void RkllmSlot::rest() {
  set_timer(pause_.next().value_or(std::chrono::minutes(1)), &RkllmSlot::start);
  owner_->on_slot_changed();
}

void RkllmSlot::set_timer(Duration time, void (RkllmSlot::*task)()) {
  cancel_timer();
  timer_ = loop_->schedule_at(loop_->clock().now() + time, [this, task] {
    timer_ = 0;
    (this->*task)();
  });
}

void RkllmSlot::cancel_timer() {
  if (timer_ != 0) loop_->cancel(std::exchange(timer_, 0));
}

// --- answers ------------------------------------------------------------------------------------

void RkllmSlot::begin(RunPtr run) {
  phase_ = Phase::running;
  run_ = std::move(run);
  has_failed_ = false;
  early_ = std::nullopt;
  if (!run_->admitted) run_->admitted = loop_->clock().now();
  run_->phase = RkllmRun::Phase::prefill;
  run_->try_tokens = 0;
  has_spoken_ = false;
  generated_ = -1;
  ++run_number_;
  is_asked_ = false;
  may_go_on(*run_) ? prepare_run() : clear_memory();
}

RkllmSlot::MemoryOwner RkllmSlot::owner_of(const RkllmRun& run) const {
  return {.client = options_->share_prefixes ? std::string() : run.place.client,
          .adapter = run.params.lora_adapter_name};
}

bool RkllmSlot::may_go_on(const RkllmRun& run) const {
  return !has_memory() || !live_owner_ || *live_owner_ == owner_of(run);
}

void RkllmSlot::clear_memory() {
  set_timer(options_->load_timeout, &RkllmSlot::on_clear_late);
  process_->ask(method::kClearKvCache, object_of(encode(ClearParams{})),
                [this](const Result<json::object>& answer) {
                  cancel_timer();
                  // A version without the function forgets each run.
                  const bool has_none = !answer && answer.error().code == kMethodNotFound;
                  if (!has_none && returned_by(answer) != 0) {
                    return give_up("it does not clear its memory");
                  }
                  live_.clear();
                  live_owner_.reset();
                  run_ == nullptr ? settle() : prepare_run();
                });
}

void RkllmSlot::on_clear_late() {
  give_up("it takes too long to clear its memory");
}

void RkllmSlot::prepare_run() {
  may_use_caches() ? plan_caches() : ask_to_run();
}

void RkllmSlot::ask_to_run() {
  is_asked_ = true;
  live_owner_ = owner_of(*run_);
  RunRequest request{.number = run_number_,
                     .input = run_->input,
                     .params = run_->params,
                     .choice = run_->choice,
                     .numbers = std::exchange(run_->input_numbers, {})};
  if (plan_.save) {
    request.params.prompt_cache_path = plan_.save->path;
    request.params.save_prompt_cache = true;
  }
  const auto* const prompt = std::get_if<std::string>(&run_->input.input);
  keeps_text_ = prompt != nullptr && !run_->choice && run_->params.mode == InferMode::generate;
  live_ = keeps_text_ ? *prompt : std::string();
  process_->ask(method::kRun, object_of(encode(request)),
                [this](const Result<json::object>& answer) { on_run_returned(answer); });
}

void RkllmSlot::drop(const RunPtr& run) {
  if (run_ != run) return;
  run_ = nullptr;
  has_spoken_ = false;
  // What is done before that goes on, and then finds that nobody wants it.
  if (is_asked_ && !early_) abort_run();
}

void RkllmSlot::abort_run() {
  abort_by_ = loop_->clock().now() + options_->abort_timeout;
  ask_to_abort();
}

void RkllmSlot::ask_to_abort() {
  const TimePoint now = loop_->clock().now();
  if (now >= abort_by_) return give_up("it does not end an answer that nobody wants");
  // Whatever the runtime makes of that, the end of the run is what counts.
  process_->ask(method::kAbort, object_of(encode(AbortParams{.run = run_number_})),
                [](const Result<json::object>&) {});
  set_timer(std::min(kAbortPause, abort_by_ - now), &RkllmSlot::on_abort_late);
}

void RkllmSlot::on_abort_late() {
  if (run_ != nullptr) end_run(*early_);
  ask_to_abort();
}

void RkllmSlot::on_output(const TokenRecord& output) {
  if (run_ == nullptr || output.run != run_number_) return;
  if (output.kind == TokenRecord::Kind::figures) return take_figures(output.bytes);
  if (early_) return;
  if (output.kind != TokenRecord::Kind::text) return take_numbers(output);
  if (output.state == CallState::error) has_failed_ = true;
  // What brings numbers is no token.
  if (output.bytes.empty() && run_->params.mode != InferMode::generate) return;
  if (output.state == CallState::normal || output.state == CallState::waiting) {
    take_text(output.bytes);
  }
}

void RkllmSlot::take_figures(std::string_view bytes) {
  PerfStat figures{};
  if (bytes.size() != sizeof figures) return;
  std::memcpy(&figures, bytes.data(), sizeof figures);
  generated_ = figures.generate_tokens;
  run_->prompt_tokens += static_cast<std::uint32_t>(std::max(0, figures.prefill_tokens));
  const auto add = [](float& to, float milliseconds) {
    if (milliseconds > 0 && milliseconds < kMostMilliseconds) to += milliseconds;
  };
  add(run_->prefill_ms, figures.prefill_time_ms);
  add(run_->decode_ms, figures.generate_time_ms);
}

void RkllmSlot::take_numbers(const TokenRecord& output) {
  RkllmRun& run = *run_;
  const InferMode mode = output.kind == TokenRecord::Kind::logits
                             ? InferMode::get_logits
                             : InferMode::get_last_hidden_layer;
  if (run.params.mode != mode || output.bytes.size() > kMaxYield - run.yielded.size()) return;
  run.last_token = loop_->clock().now();
  if (!run.first_token) run.first_token = run.last_token;
  run.yield_columns = output.columns;
  run.yielded.append(output.bytes);
}

void RkllmSlot::take_text(std::string_view bytes) {
  RkllmRun& run = *run_;
  const TimePoint now = loop_->clock().now();
  if (!run.first_token) run.first_token = now;
  run.last_token = now;
  run.phase = RkllmRun::Phase::decode;
  has_spoken_ = true;
  if (keeps_text_) live_.append(bytes);
  ++run.completion_tokens;
  ++run.try_tokens;
  const ChatTemplate* const format = options_->chat_template.get();
  if (format != nullptr && format->hides(bytes)) bytes = {};
  const bool has_stopped = run.reader->push(bytes, deltas_);
  for (Delta& each : std::exchange(deltas_, {})) run.take(std::move(each));
  if (has_stopped) return end_early(Completion::Reason::stop);
  if (run.max_tokens != 0 && run.try_tokens >= run.max_tokens) {
    end_early(Completion::Reason::length);
  }
}

void RkllmSlot::end_early(Completion::Reason reason) {
  early_ = reason;
  if (library_->abi != nullptr && !library_->abi->has_figures) end_run(reason);
  abort_run();
}

void RkllmSlot::on_run_returned(const Result<json::object>& answer) {
  const std::optional<int> result = returned_by(answer);
  const bool is_good = has_spoken_ && !has_failed_ && result == 0;
  if (!is_good) live_.clear();
  if (run_ == nullptr) {
    // Its end was told before.
  } else if (!answer) {
    end_run(Completion::Reason::error, answer.error());
  } else if (has_failed_ || result != 0) {
    if (plan_.load && !early_) caches_->forget(plan_.load->name, "a run with it has failed");
    end_run(Completion::Reason::error,
            Error(kInternalError,
                  has_failed_ ? "The runtime reports an error"
                              : "rkllm_run() returned " + std::to_string(result.value_or(0))));
  } else {
    end_run(Completion::Reason::stop);
  }
  end_caches(is_good);
}

void RkllmSlot::end_run(Completion::Reason reason, std::optional<Error> error) {
  if (early_) {
    reason = *early_;
    error = std::nullopt;
  }
  owner_->on_run_over(std::exchange(run_, nullptr), reason, std::move(error));
}

}  // namespace sluice::rkllm

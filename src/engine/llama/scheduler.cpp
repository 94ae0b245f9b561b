#include "engine/llama/scheduler.hpp"

#include <algorithm>
#include <exception>
#include <map>
#include <utility>

#include "core/log/log.hpp"
#include "core/release_memory.hpp"
#include "engine/answer/cut_call.hpp"
#include "engine/llama/model/llama_log.hpp"
#include "engine/llama/scheduling/slot_chooser.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

using Reason = Completion::Reason;

/// The least number of tokens that copying a sequence must save, because it copies the sequence's
/// whole part of the memory.
constexpr std::size_t kMinCopy = 64;

/// Changing the adapter takes time, so runs with another one wait for so many steps.
constexpr std::uint32_t kStepsOfAdapter = 16;

constexpr int kNoRoom = 1;  // results of llama_decode()
constexpr int kAborted = 2;
constexpr int kThrown = -100;  // additional result of compute()

std::chrono::microseconds microseconds_between(TimePoint from, TimePoint to) {
  return std::chrono::duration_cast<std::chrono::microseconds>(to - from);
}

Error model_failed(std::string_view what) {
  return {kInternalError, std::string(what)};
}

}  // namespace

Scheduler::Scheduler(LoadedModel& model, const Options& options, SchedulerStats& stats,
                     const std::atomic<bool>& stopping)
    : model_(model),
      context_(model.context.get()),
      memory_(llama_get_memory(context_)),
      vocab_(llama_model_get_vocab(model.model.get())),
      options_(options),
      stats_(stats),
      stopping_(stopping),
      slots_(model.slots),
      batch_(llama_batch_init(static_cast<std::int32_t>(model.batch_tokens + model.slots), 0, 1)),
      budget_(model.batch_tokens),
      piece_(256) {
  llama_set_abort_callback(context_, should_abort, this);
}

Scheduler::~Scheduler() {
  llama_set_abort_callback(context_, nullptr, nullptr);
  llama_batch_free(batch_);
}

void Scheduler::add(RunPtr run) {
  const auto place = run->place;
  queue_.push(place, std::move(run));
}

bool Scheduler::turn() {
  handle_signals();
  admit();
  publish_positions();
  if (!build_batch()) return false;
  after_step(compute());
  return true;
}

std::optional<TimePoint> Scheduler::next_deadline() const {
  if (queue_.empty()) return std::nullopt;
  std::optional<TimePoint> first;
  for (const Slot& slot : slots_) {
    if (slot.run == nullptr || !slot.run->delivery.paused()) continue;
    const TimePoint due = slot.run->paused_since + options_.grace;
    if (!first || due < *first) first = due;
  }
  return first;
}

void Scheduler::cancel_all() {
  queue_.take_if([](const RunPtr&) { return true; },
                 [&](const RunPtr& run) { complete(run, Reason::cancelled); });
  for (Slot& slot : slots_) {
    if (slot.run != nullptr) finish(slot, Reason::cancelled);
  }
  for (auto* const list : {&parked_, &draining_}) {
    for (const RunPtr& run : std::exchange(*list, {})) complete(run, Reason::cancelled);
  }
  publish_positions();
}

/// Ends cancelled runs and continues resumed ones.
void Scheduler::handle_signals() {
  queue_.take_if([](const RunPtr& run) { return run->cancelled.load(); },
                 [&](const RunPtr& run) { complete(run, Reason::cancelled); });
  for (Slot& slot : slots_) {
    if (slot.run == nullptr) continue;
    if (slot.run->cancelled) {
      finish(slot, Reason::cancelled);
    } else if (slot.run->delivery.poll()) {
      slot.run->paused_since = clock_.now();
    }
  }
  std::erase_if(parked_, [&](const RunPtr& run) {
    if (run->cancelled) {
      complete(run, Reason::cancelled);
      return true;
    }
    run->delivery.poll();
    if (run->delivery.paused()) return false;
    queue_.push(run->place, run);
    return true;
  });
  std::erase_if(draining_, [&](const RunPtr& run) {
    if (run->cancelled) {
      complete(run, Reason::cancelled);
      return true;
    }
    run->delivery.poll();
    if (!run->delivery.done()) return false;
    run->share.reset();
    return true;
  });
}

void Scheduler::admit() {
  while (!queue_.empty()) {
    const bool free =
        std::ranges::any_of(slots_, [](const Slot& slot) { return slot.run == nullptr; });
    if (!free && !reclaim_paused() && !reclaim_surplus()) return;
    const RunPtr run = queue_.pop();
    if (begin(run)) place(run);
  }
}

/// Takes the slot from the run that has been paused longest, if it has been paused for the grace
/// period.
bool Scheduler::reclaim_paused() {
  Slot* longest = nullptr;
  for (Slot& slot : slots_) {
    if (!slot.run->delivery.paused()) continue;
    if (longest == nullptr || slot.run->paused_since < longest->run->paused_since) longest = &slot;
  }
  if (longest == nullptr || clock_.now() < longest->run->paused_since + options_.grace)
    return false;
  parked_.push_back(vacate(*longest));
  return true;
}

/// Takes a slot from the client that has the most, for the client that is next, if the latter's run
/// has waited for the grace period and has at least two slots fewer. The run that loses its slot
/// waits for its turn again.
bool Scheduler::reclaim_surplus() {
  const RunPtr& next = queue_.front();
  if (clock_.now() < next->started + options_.grace) return false;
  std::map<std::string_view, std::size_t> slots_of;
  for (const Slot& slot : slots_) ++slots_of[slot.run->place.client];
  Slot* youngest = nullptr;
  for (Slot& slot : slots_) {
    const std::size_t most = youngest == nullptr ? slots_of[next->place.client] + 1
                                                 : slots_of[youngest->run->place.client];
    const std::size_t has = slots_of[slot.run->place.client];
    if (has > most || (youngest != nullptr && has == most &&
                       slot.run->place.arrival > youngest->run->place.arrival)) {
      youngest = &slot;
    }
  }
  if (youngest == nullptr) return false;
  const RunPtr run = vacate(*youngest);
  queue_.push(run->place, run);
  return true;
}

/// Removes the run from its slot, which keeps its content.
RunPtr Scheduler::vacate(Slot& slot) {
  slot.last_used = ++uses_;
  return std::exchange(slot.run, nullptr);
}

/// Prepares a run for its slot. Returns false if the run has failed; it has then been completed.
bool Scheduler::begin(const RunPtr& run) {
  if (run->admitted) return true;
  if (run->fault) {
    complete(run, Reason::error, std::exchange(run->fault, std::nullopt));
    return false;
  }
  PreparedRequest prepared = *std::exchange(run->prepared, std::nullopt);
  run->tokens = std::move(prepared.tokens);
  if (prepared.continues) {
    run->tokens.insert(run->tokens.begin(), run->continued->begin(), run->continued->end());
  }
  run->continued.reset();
  run->visible = std::move(prepared.visible);
  run->max_tokens = prepared.max_tokens;
  run->reader = std::make_unique<AnswerReader>(std::move(prepared.reader));
  run->sampler =
      std::make_unique<TokenSampler>(vocab_, prepared.sampling, std::move(prepared.constraint),
                                     run->tokens, model_.context_tokens);
  run->usage.prompt_tokens = static_cast<std::uint32_t>(run->tokens.size());
  stats_.prompt_tokens += run->tokens.size();
  return true;
}

/// Gives a run the best free slot. There must be one.
void Scheduler::place(const RunPtr& run) {
  std::vector<SlotView> views;
  views.reserve(slots_.size());
  for (const Slot& slot : slots_) {
    views.push_back({.tokens = slot.tokens,
                     .free = slot.run == nullptr,
                     .foreign = slot.adapter != run->adapter ||
                                (!options_.share_prefixes && slot.owner != run->principal),
                     .last_used = slot.last_used});
  }
  const SlotChoice choice = *choose_slot(
      views, run->tokens, model_.can_copy ? kMinCopy : run->tokens.size() + model_.context_tokens);
  Slot& slot = slots_[choice.slot];
  const auto id = static_cast<llama_seq_id>(choice.slot);
  if (choice.copy_from) {
    llama_memory_seq_rm(memory_, id, -1, -1);
    llama_memory_seq_cp(memory_, static_cast<llama_seq_id>(*choice.copy_from), id, -1, -1);
    slot.tokens = slots_[*choice.copy_from].tokens;
  }
  truncate(choice.slot, choice.keep);
  slot.run = run;
  slot.owner = run->principal;
  slot.adapter = run->adapter;
  const auto cached = static_cast<std::uint32_t>(slot.tokens.size());
  if (!run->admitted) {
    run->admitted = clock_.now();
    run->usage.cached_tokens = cached;
    stats_.cached_tokens += cached;
  }
  run->prefill_total = static_cast<std::uint32_t>(run->tokens.size());
  run->prefill_done = cached;
  run->phase = LlamaRun::Phase::prefill;
}

/// Fills the batch with every answer's last token and with pieces of prompts. Returns false if
/// there is nothing to compute.
bool Scheduler::build_batch() {
  choose_adapter();
  std::size_t answers = 0;
  std::vector<std::size_t> prompts;
  const std::string* client = nullptr;
  auto clients = PrefillBudget::Clients::one;
  const auto missing_of = [&](std::size_t i) {
    return static_cast<std::uint32_t>(slots_[i].run->tokens.size() - slots_[i].tokens.size());
  };
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    slot.added = 0;
    slot.output = -1;
    if (slot.run == nullptr || slot.run->delivery.paused()) continue;
    if (slot.run->adapter != adapter_) continue;
    if (client == nullptr) client = &slot.run->place.client;
    if (slot.run->place.client != *client) clients = PrefillBudget::Clients::several;
    if (missing_of(i) == 1) {
      slot.added = 1;
      ++answers;
    } else {
      prompts.push_back(i);
    }
  }
  std::ranges::sort(prompts, {}, [&](std::size_t i) { return slots_[i].run->place.arrival; });
  std::vector<std::uint32_t> missing;
  for (const std::size_t i : prompts) missing.push_back(missing_of(i));
  const auto pieces = budget_.share(missing, answers, clients);
  for (std::size_t i = 0; i < prompts.size(); ++i) slots_[prompts[i]].added = pieces[i];
  // Added in the order of the slots, because llama.cpp computes consecutive sequences together.
  batch_.n_tokens = 0;
  for (std::size_t i = 0; i < slots_.size(); ++i) add_to_batch(i);
  return batch_.n_tokens > 0;
}

/// Adds the tokens that a slot has been given in this step to the batch.
void Scheduler::add_to_batch(std::size_t index) {
  Slot& slot = slots_[index];
  for (std::uint32_t i = 0; i < slot.added; ++i) {
    const std::vector<llama_token>& tokens = slot.run->tokens;
    const std::size_t position = slot.tokens.size() + i;
    const std::int32_t at = batch_.n_tokens++;
    batch_.token[at] = tokens[position];
    batch_.pos[at] = static_cast<llama_pos>(position);
    batch_.n_seq_id[at] = 1;
    batch_.seq_id[at][0] = static_cast<llama_seq_id>(index);
    batch_.logits[at] = static_cast<std::int8_t>(position + 1 == tokens.size());
    if (position + 1 == tokens.size()) slot.output = at;
  }
}

/// Keeps the adapter, unless no run needs it or others have waited long enough: then it is that of
/// the run that has waited longest.
void Scheduler::choose_adapter() {
  const Slot* other = nullptr;
  bool is_needed = false;
  for (const Slot& slot : slots_) {
    if (slot.run == nullptr || slot.run->delivery.paused()) continue;
    if (slot.run->adapter == adapter_) {
      is_needed = true;
    } else if (other == nullptr || slot.adapter_turn < other->adapter_turn) {
      other = &slot;
    }
  }
  ++adapter_steps_;
  if (other == nullptr || (is_needed && adapter_steps_ <= kStepsOfAdapter)) return;
  adapter_ = other->run->adapter;
  adapter_steps_ = 1;
  ++adapter_turns_;
  for (Slot& slot : slots_) {
    if (slot.run != nullptr && slot.run->adapter == adapter_) slot.adapter_turn = adapter_turns_;
  }
}

/// Has the context use the adapter of the step.
void Scheduler::use_adapter() {
  llama_adapter_lora* adapter = adapter_ == nullptr ? nullptr : adapter_->adapter;
  float scale = adapter_ == nullptr ? 0 : adapter_->scale;
  llama_set_adapters_lora(context_, &adapter, adapter_ == nullptr ? 0 : 1, &scale);
}

/// Computes one step of the model.
int Scheduler::compute() {
  const LlamaGuard guard;
  const TimePoint before = clock_.now();
  int status = kThrown;
  try {
    use_adapter();
    status = llama_decode(context_, batch_);
    if (status == 0) llama_synchronize(context_);
  } catch (const std::exception& error) {
    log_error("the model failed", {{"error", std::string_view(error.what())}});
  }
  if (status == 0)
    budget_.observe(static_cast<std::uint32_t>(batch_.n_tokens), clock_.now() - before);
  return status;
}

void Scheduler::after_step(int status) {
  if (status != 0) {
    // Part of the batch may be in the model's memory already.
    if (status == kNoRoom) log_warning("the model's memory has no room for a step");
    // A context whose adapter does not fit is left unprepared, until another one is set.
    if (status == kThrown) llama_set_adapters_lora(context_, nullptr, 0, nullptr);
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].added == 0) continue;
      if (status == kAborted) {
        // All runs were cancelled, and the next turn ends them. Others may go on from them.
        truncate(i, slots_[i].tokens.size());
        continue;
      }
      forget(i);
      finish(slots_[i], Reason::error,
             model_failed(status == kNoRoom
                              ? "the model's memory is full; use a smaller context or fewer slots"
                              : "the model failed to compute"));
    }
    return;
  }
  for (Slot& slot : slots_) {
    if (slot.added == 0) continue;
    const auto from = slot.run->tokens.begin() + static_cast<std::ptrdiff_t>(slot.tokens.size());
    slot.tokens.insert(slot.tokens.end(), from, from + slot.added);
    if (slot.run->phase == LlamaRun::Phase::prefill) {
      slot.run->prefill_done = static_cast<std::uint32_t>(slot.tokens.size());
    }
  }
  for (Slot& slot : slots_) {
    if (slot.output >= 0 && !slot.run->cancelled) sample(slot);
  }
}

void Scheduler::sample(Slot& slot) {
  const LlamaGuard guard;
  Result<llama_token> token = LLAMA_TOKEN_NULL;
  std::string_view text;
  try {
    token = slot.run->sampler->sample(context_, slot.output);
    if (token) text = text_of(*token, slot.run->visible.contains(*token));
  } catch (const std::exception& error) {
    log_error("sampling failed", {{"error", std::string_view(error.what())}});
    token = std::unexpected(model_failed("the model failed to choose a token"));
  }
  if (!token) {
    finish(slot, Reason::error, std::move(token).error());
    return;
  }
  take(slot, *token, text);
}

/// The bytes of a token, valid until the next call. A control token has bytes only if it is
/// `visible`.
std::string_view Scheduler::text_of(llama_token token, bool visible) {
  auto length = llama_token_to_piece(vocab_, token, piece_.data(),
                                     static_cast<std::int32_t>(piece_.size()), 0, visible);
  if (length < 0) {
    piece_.resize(static_cast<std::size_t>(-length));
    length = llama_token_to_piece(vocab_, token, piece_.data(), -length, 0, visible);
  }
  return {piece_.data(), static_cast<std::size_t>(std::max(length, 0))};
}

/// Continues the answer with `token`, whose text is `text`.
void Scheduler::take(Slot& slot, llama_token token, std::string_view text) {
  LlamaRun& run = *slot.run;
  run.last_token = clock_.now();
  if (!run.first_token) run.first_token = run.last_token;
  run.phase = LlamaRun::Phase::decode;
  if (llama_vocab_is_eog(vocab_, token)) {
    finish(slot, Reason::stop);
    return;
  }
  run.tokens.push_back(token);
  ++run.completion_tokens;
  ++stats_.completion_tokens;
  const bool stopped = run.reader->push(text, deltas_);
  for (Delta& delta : deltas_) run.delivery.deliver(std::move(delta));
  deltas_.clear();
  if (run.delivery.paused()) run.paused_since = run.last_token;

  if (stopped) {
    finish(slot, Reason::stop);
  } else if (run.completion_tokens == run.max_tokens ||
             run.tokens.size() >= model_.context_tokens) {
    finish(slot, Reason::length);
  }
}

/// Why the run, which ended at a limit, has no tool call to give.
Error Scheduler::cut_call(const LlamaRun& run) const {
  if (run.completion_tokens == run.max_tokens) return cut_call_at_limit(run.max_tokens);
  return cut_call_error("the model's context of " + std::to_string(model_.context_tokens) +
                        " tokens is full; shorten the messages or raise --context");
}

/// Ends the run in `slot`. The slot keeps its content for later prompts.
void Scheduler::finish(Slot& slot, Reason reason, std::optional<Error> error) {
  const RunPtr run = std::exchange(slot.run, nullptr);
  slot.last_used = ++uses_;
  const bool keeps_sequence = run->keeps_sequence && reason != Reason::error &&
                              (reason == Reason::stop || run->reader->is_in_text());
  if (reason == Reason::stop || reason == Reason::length) {
    const AnswerReader::Ending ending = run->reader->finish(reason == Reason::stop, deltas_);
    if (ending == AnswerReader::Ending::calls) reason = Reason::tool_calls;
    if (ending == AnswerReader::Ending::cut_call) {
      reason = Reason::error;
      error = cut_call(*run);
    }
    for (Delta& delta : deltas_) run->delivery.deliver(std::move(delta));
    deltas_.clear();
  }
  // Calls that wait may still be dropped, and then nobody answers them.
  const bool may_lose_calls = reason == Reason::tool_calls && run->delivery.is_behind();
  if (keeps_sequence && reason != Reason::error && !may_lose_calls) {
    run->sequence = std::make_shared<const std::vector<llama_token>>(std::move(run->tokens));
  }
  complete(run, reason, std::move(error));
}

/// Makes the last call to a run's sink, at once or when the sink has taken the rest.
void Scheduler::complete(const RunPtr& run, Reason reason, std::optional<Error> error) {
  Completion completion;
  completion.reason = reason;
  completion.error = std::move(error);
  completion.usage = run->usage;
  completion.usage.completion_tokens = run->completion_tokens;
  const TimePoint now = clock_.now();
  const TimePoint admitted = run->admitted.value_or(now);
  completion.timings.queue = microseconds_between(run->started, admitted);
  completion.timings.prefill = microseconds_between(admitted, run->first_token.value_or(now));
  if (run->first_token) {
    completion.timings.decode = microseconds_between(*run->first_token, run->last_token);
  }
  if (reason == Reason::cancelled) ++stats_.cancelled;
  run->phase = LlamaRun::Phase::done;
  run->sampler.reset();
  release_memory(run->tokens);
  run->delivery.complete(std::move(completion), reason == Reason::cancelled);
  if (run->delivery.done()) {
    run->share.reset();
  } else {
    draining_.push_back(run);
  }
}

/// Takes all but the first `keep` tokens of a slot out of the model's memory.
void Scheduler::truncate(std::size_t slot, std::size_t keep) {
  const auto id = static_cast<llama_seq_id>(slot);
  if (llama_memory_seq_rm(memory_, id, static_cast<llama_pos>(keep), -1)) {
    slots_[slot].tokens.resize(keep);
  } else {
    forget(slot);  // this model's memory cannot be truncated
  }
}

/// Clears a slot's part of the model's memory.
void Scheduler::forget(std::size_t slot) {
  llama_memory_seq_rm(memory_, static_cast<llama_seq_id>(slot), -1, -1);
  slots_[slot].tokens.clear();
}

void Scheduler::publish_positions() {
  queue_.visit([](const RunPtr& run, std::uint32_t position) {
    run->queue_position = position;
    run->phase = LlamaRun::Phase::queued;
  });
  stats_.queued = static_cast<std::uint32_t>(queue_.size());
  stats_.slots_busy = static_cast<std::uint32_t>(
      std::ranges::count_if(slots_, [](const Slot& slot) { return slot.run != nullptr; }));
}

/// llama.cpp calls this between the operations of a step. Returns true, which aborts the step, if
/// the engine stops or all runs in the step have been cancelled.
bool Scheduler::should_abort(void* self) {
  const auto& scheduler = *static_cast<const Scheduler*>(self);
  if (scheduler.stopping_) return true;
  bool wanted = false;
  for (const Slot& slot : scheduler.slots_) {
    wanted = wanted || (slot.added > 0 && !slot.run->cancelled);
  }
  return !wanted;
}

}  // namespace sluice

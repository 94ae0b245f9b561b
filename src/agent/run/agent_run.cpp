#include "agent/run/agent_run.hpp"

#include <algorithm>
#include <utility>

namespace sluice {
namespace {

constexpr std::string_view kStatusTool = "tool_status";
constexpr std::string_view kCancelTool = "tool_cancel";

json::object definition(std::string_view name, std::string_view description,
                        json::object parameters) {
  return {{"type", "function"},
          {"function",
           {{"name", name}, {"description", description}, {"parameters", std::move(parameters)}}}};
}

json::object call_id_parameter(bool is_required) {
  json::object schema{{"type", "object"}, {"properties", {{"call_id", {{"type", "string"}}}}}};
  if (is_required) schema["required"] = json::array{"call_id"};
  return schema;
}

}  // namespace

AgentRun::AgentRun(Executor& loop, RunEvents& events, RunAgent agent)
    : loop_(&loop), events_(&events), history_(RunHistoryOptions()) {
  adopt(std::move(agent));
  for (Duration* const each : {&options_.idle_timeout, &options_.call_timeout,
                               &options_.budget.time, &options_.budget.last_answer}) {
    *each = at_most_forever(*each);
  }
}

AgentRun::~AgentRun() {
  if (timer_ != 0) loop_->cancel(timer_);
  const auto goes_on = [](const auto& each) {
    return each.second->running != nullptr && each.second->can_be_taken_up;
  };
  // Whoever goes on with it need not show again what was taken since the state was kept.
  if (keeper_ != nullptr && !is_keeping_ && std::ranges::any_of(calls_, goes_on)) {
    keeper_->keep(state_with("ended"), [](const Result<void>& /*kept*/) {});
  }
  for (const auto& [id, call] : calls_) {
    call->leave();
    const bool is_left = keeper_ != nullptr || call->is_in_snapshot;
    if (is_left && call->running != nullptr) call->running->leave();
    // It has a pointer to the call, too.
    call->running.reset();
  }
}

void AgentRun::write(AgentEventType type, std::string call_id, json::object data) {
  events_->push(
      {.type = type, .turn = responses_, .call_id = std::move(call_id), .data = std::move(data)});
}

void AgentRun::begin() {
  phase_ = Phase::running;
  began_at_ = loop_->clock().now();
  offer();
  write(AgentEventType::run_started, {},
        {{"agent", options_.name}, {"model", engine_->info().model}});
}

void AgentRun::offer() {
  json::array offered;
  for (const AgentTool& tool : tools_->tools()) {
    offered.emplace_back(definition(tool.name, tool.description, tool.input_schema));
  }
  // Calls may have come with a hand-off, or be of a run that goes on.
  if ((!offered.empty() || !calls_.empty()) && options_.offers_call_tools) {
    offered.emplace_back(
        definition(kStatusTool, "What running calls have written so far: of one call, or of all.",
                   call_id_parameter(false)));
    offered.emplace_back(definition(kCancelTool, "Stops a running call.", call_id_parameter(true)));
  }
  const auto& find = reached_.at(options_.name).handoffs;
  handoffs_ = find ? find() : std::vector<RunHandoff>();
  for (const RunHandoff& each : handoffs_) {
    offered.emplace_back(definition(each.tool, each.description,
                                    {{"type", "object"}, {"properties", json::object()}}));
  }
  offered_ = offered.empty() ? std::string() : to_json(offered);
  last_generation_.reset();
}

Result<void> AgentRun::check_input(std::string_view text,
                                   const std::vector<ChatImage>& images) const {
  if (text.empty()) return fail(-32602, "The input has no text");
  if (images.empty() || history_options().max_images > 0) return {};
  return fail(-32602, "The input has images, and the model is shown none (max_images)");
}

std::string AgentRun::add_input(RunInput input) {
  std::string id = "input_" + std::to_string(++last_input_);
  inputs_.push_back({id, std::move(input)});
  keep();
  later();
  return id;
}

void AgentRun::start(AgentInput input) {
  begin();
  add_input({.text = input.text(), .images = input.images()});
}

Result<std::string> AgentRun::inject(RunInput input) {
  if (phase_ != Phase::running) return fail(-32602, "The run takes no more input");
  if (auto checked = check_input(input.text, input.images); !checked) {
    return std::unexpected(std::move(checked.error()));
  }
  if (inputs_.size() >= options_.max_inputs) {
    return fail(kBusy, std::to_string(options_.max_inputs) + " inputs wait already");
  }
  return add_input(std::move(input));
}

void AgentRun::cancel_turn() {
  if (phase_ == Phase::closing || phase_ == Phase::grace) return cancel();
  if (phase_ != Phase::running) return;
  pending_handoff_.reset();  // first, so that it is not kept with the calls
  cancel_calls("Cancelled");
  break_off();
  drops_news_ = true;
  later();
}

void AgentRun::cancel() {
  if (phase_ == Phase::over || phase_ == Phase::created) return;
  cancel_calls("Cancelled");
  end("cancelled", "");
}

void AgentRun::on_room(const std::string& call_id) {
  if (call_id.empty()) {
    if (held_up_at_) closing_at_ += loop_->clock().now() - *std::exchange(held_up_at_, {});
    if (answer_ != nullptr) answer_->resume();
    return later();  // for calls that wait
  }
  const auto found = calls_.find(call_id);
  if (found == calls_.end() || !found->second->is_paused) return;
  found->second->is_paused = false;
  found->second->heard_at = loop_->clock().now();
  if (found->second->running != nullptr) found->second->running->pause(false);
}

// --- what is to be done -------------------------------------------------------------------------

void AgentRun::later() {
  if (std::exchange(is_scheduled_, true)) return;
  loop_->post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) {
      self->is_scheduled_ = false;
      self->guard([&self] { self->advance(); });
    }
  });
}

void AgentRun::advance() {
  if (phase_ == Phase::over) return;
  const TimePoint now = loop_->clock().now();
  expire(now);
  if (phase_ == Phase::grace) {
    if (running_ == 0) return end(end_status_, end_reason_);
    return arm();
  }
  if (phase_ == Phase::running) start_waiting();
  if (answer_ != nullptr) {
    const auto due = due_calls(false);
    const bool interrupts = std::ranges::any_of(
        due, [](const RunningCall* call) { return call->trigger.policy().interrupts; });
    if (phase_ == Phase::running && (interrupts || has_input(true))) break_off();
    return arm();
  }
  if (options_.cancels_on_interrupt && has_input(true)) cancel_calls("Interrupted by the user");
  if (hand_over()) return arm();
  // Nobody is told of an end that is not kept: after a crash it would not be known.
  if (!ended_.empty()) return arm();
  deliver_ends();
  if (!history_.is_answered()) {
    const bool goes_on =
        options_.detaches && (is_new_ || !used_up_.empty() || !due_calls(true).empty() ||
                              has_input(false) || wants_control());
    if (!goes_on) return arm();
    has_news_ = has_news_ || wants_control();
    for (const auto& [id, call] : calls_) {
      if (call->state == RunningCall::State::ended || history_.is_detached(id)) continue;
      if (call->trigger.policy().when != ReactionPolicy::When::pass_through) show_output(*call);
      write(AgentEventType::tool_detached, id);
    }
    history_.detach_open_calls();
    deliver_ends();
  }
  if (std::exchange(drops_news_, false)) {
    has_news_ = false;
    reacting_.clear();
  }
  const bool reacts = !reacting_.empty() || !due_calls(true).empty();
  if (deliver_inputs(has_news_ || reacts)) has_news_ = true;
  if (phase_ != Phase::running) return;  // an input was refused
  if (has_news_ || reacts) return ask();
  if (!calls_.empty()) return arm();
  finish(was_cut_ ? "incomplete" : "completed", was_cut_ ? "max_output_tokens" : "");
}

bool AgentRun::has_input(bool that_interrupts) const {
  return std::ranges::any_of(inputs_, [&](const Waiting& each) {
    return each.input.when == RunInput::When::interrupt ||
           (!that_interrupts && each.input.when == RunInput::When::asap);
  });
}

bool AgentRun::wants_control() const {
  return std::ranges::any_of(calls_, [&](const auto& each) {
    return each.second->state == RunningCall::State::running &&
           each.second->trigger.policy().when == ReactionPolicy::When::on_demand &&
           !history_.is_detached(each.first);
  });
}

std::vector<RunningCall*> AgentRun::due_calls(bool is_idle) const {
  std::vector<RunningCall*> due;
  if (!can_react()) return due;
  const TimePoint now = loop_->clock().now();
  for (const auto& [id, call] : calls_) {
    if (call->state == RunningCall::State::running && call->trigger.is_due(is_idle, now)) {
      due.push_back(call.get());
    }
  }
  return due;
}

void AgentRun::deliver_ends() {
  // First the results that the last answer waits for. An update must not come before them.
  for (const bool detached : {false, true}) {
    if (detached && !history_.is_answered()) return;
    for (auto next = calls_.begin(); next != calls_.end();) {
      RunningCall& call = *next->second;
      if (!call.end || history_.is_detached(next->first) != detached) {
        ++next;
        continue;
      }
      history_.set_result(next->first, call.end->text, call.unseen_range,
                          std::move(call.end->images));
      has_news_ = true;
      call.leave();
      next = calls_.erase(next);
    }
  }
}

bool AgentRun::deliver_inputs(bool is_asked) {
  const bool is_idle = calls_.empty() && !is_asked;
  const bool wants_answer = std::ranges::any_of(inputs_, [&](const Waiting& each) {
    return each.input.when == RunInput::When::asap ||
           each.input.when == RunInput::When::interrupt ||
           (is_idle && each.input.when == RunInput::When::when_idle);
  });
  std::deque<Waiting> left;
  for (Waiting& each : inputs_) {
    const bool waits = (each.input.when == RunInput::When::when_idle && !is_idle) ||
                       (each.input.when == RunInput::When::silent && !is_asked && !wants_answer);
    if (waits) {
      left.push_back(std::move(each));
      continue;
    }
    if (options_.guardrails.input) {
      auto text = options_.guardrails.input(std::move(each.input.text));
      if (text && text->empty()) text = fail(-32602, "The input has no text");
      if (!text) {
        inputs_.clear();
        cancel_calls("Cancelled");
        finish("failed", text.error().message);
        return false;
      }
      each.input.text = *std::move(text);
    }
    history_.add_input(each.input.text, std::move(each.input.images));
    write(AgentEventType::input_delivered, {}, {{"input_id", each.id}});
  }
  inputs_ = std::move(left);
  return wants_answer;
}

void AgentRun::deliver_outputs() {
  for (const auto& [id, call] : calls_) {
    if (call->is_shown()) show_output(*call);
  }
}

void AgentRun::show_output(RunningCall& call) {
  if (!call.unseen_range) return;
  history_.add_output(call.asked.id, *call.unseen_range, std::exchange(call.unseen, {}),
                      std::exchange(call.cut, 0), std::exchange(call.unseen_images, {}));
  call.unseen_range.reset();
  call.trigger.on_reaction(loop_->clock().now());
  if (std::ranges::find(reacting_, call.asked.id) == reacting_.end()) {
    reacting_.push_back(call.asked.id);
  }
}

// --- the end ------------------------------------------------------------------------------------

void AgentRun::finish(std::string status, std::string reason) {
  if (phase_ == Phase::over || phase_ == Phase::grace) return;
  if (running_ == 0) return end(std::move(status), std::move(reason));
  end_status_ = std::move(status);
  end_reason_ = std::move(reason);
  phase_ = Phase::grace;
  grace_from_ = loop_->clock().now();
  later();
}

void AgentRun::end(std::string status, std::string reason) {
  if (phase_ == Phase::over) return;
  cancel_calls("The run is over");
  if (answer_ != nullptr) {
    Completion cancelled;
    cancelled.reason = Completion::Reason::cancelled;
    if (const auto generation = answer_->generation()) {
      cancelled.usage.completion_tokens = generation->status().completion_tokens;
    }
    answer_->cancel();
    end_answer(*answer_, cancelled);
    // What was said stays said.
    history_.add_answer(answer_->writer.output_text());
    answer_.reset();
  }
  end_reaction();
  phase_ = Phase::over;
  // A later run may go on with the history, but has nothing to do unless it has an input.
  deliver_ends();
  has_news_ = false;
  inputs_.clear();
  if (timer_ != 0) loop_->cancel(std::exchange(timer_, 0));
  end_status_ = status;
  end_reason_ = reason;
  std::string text = last_text_;
  if (options_.guardrails.output) {
    if (auto checked = options_.guardrails.output(std::move(text))) {
      text = *std::move(checked);
    } else {
      text.clear();
      status = "failed";
      reason = checked.error().message;
    }
  }
  last_event_ = AgentEvent{.type = AgentEventType::run_done,
                           .turn = responses_,
                           .text = std::move(text),
                           .data = {{"status", status}, {"reason", reason}, {"usage", usage()}}};
  // Whoever hears of the end may go on with what is kept.
  keeper_ == nullptr ? write_last() : keep();
}

json::object AgentRun::usage() const {
  json::object out{{"input_tokens", usage_.prompt},
                   {"cached_tokens", usage_.cached},
                   {"output_tokens", usage_.completion},
                   {"turns", turns_},
                   {"reactions", reactions_}};
  if (options_.price || options_.reaction_price || usage_.cost > 0) out["cost"] = usage_.cost;
  return out;
}

void AgentRun::write_last() {
  if (last_event_) events_->push(*std::exchange(last_event_, std::nullopt));
}

// --- time ---------------------------------------------------------------------------------------

void AgentRun::expire(TimePoint now) {
  for (const auto& [id, call] : calls_) {
    if (call->state != RunningCall::State::running) continue;
    const auto patience = silent_until(*call);
    const bool is_silent = patience && now >= *patience;
    if (phase_ == Phase::grace && now >= grace_from_ + call->grace) {
      end_call(*call, {.status = ToolEnd::Status::cancelled, .text = "The run is over"});
      continue;
    }
    const bool is_late =
        options_.call_timeout > Duration::zero() && now >= call->started_at + options_.call_timeout;
    if (!is_silent && !is_late) continue;
    end_call(*call,
             lost_end(*call->tool, is_silent ? "it was silent for too long" : "it took too long"));
  }
  if (const auto until = last_answer_until(); until && now >= *until) return break_off();
  if (phase_ != Phase::running || !used_up_.empty() || !is_time_over()) return;
  used_up_ = "time";
  // Nothing is waited for any more. What runs has its grace behind the last answer, which can be
  // given before only if calls may be detached.
  constexpr std::string_view kWhy = "The run's time is over";
  options_.detaches ? cancel_waiting_calls(kWhy) : cancel_calls(kWhy);
  break_off();
  has_news_ = true;
}

std::optional<TimePoint> AgentRun::silent_until(const RunningCall& call) const {
  // The state of a task is asked for, so its server shows by itself that it lives.
  const bool is_watched = options_.idle_timeout > Duration::zero() && !call.is_paused &&
                          call.task.empty() && call.running != nullptr;
  if (!is_watched) return {};
  return std::max(call.heard_at, call.running->asked_until()) + options_.idle_timeout;
}

std::optional<TimePoint> AgentRun::last_answer_until() const {
  const bool is_limited = phase_ == Phase::closing && options_.budget.time > Duration::zero();
  if (!is_limited || answer_ == nullptr || answer_->is_cancelled() || held_up_at_) return {};
  return closing_at_ + options_.budget.last_answer;
}

std::optional<TimePoint> AgentRun::next_deadline() const {
  std::optional<TimePoint> next;
  const auto note = [&next](TimePoint when) {
    if (!next || when < *next) next = when;
  };
  // Nobody reacts while a hand-off waits for the calls, or the end of one for the store.
  const bool is_waiting = pending_handoff_ || (answer_ == nullptr && !ended_.empty());
  for (const auto& [id, call] : calls_) {
    if (call->state != RunningCall::State::running) continue;
    if (const auto patience = silent_until(*call)) note(*patience);
    if (options_.call_timeout > Duration::zero()) note(call->started_at + options_.call_timeout);
    if (phase_ == Phase::grace) note(grace_from_ + call->grace);
    if (phase_ != Phase::running || !options_.detaches || !can_react() || is_waiting) continue;
    const bool can_interrupt = answer_ != nullptr && !answer_->is_cancelled() &&
                               call->trigger.policy().interrupts &&
                               call->trigger.policy().when != ReactionPolicy::When::on_idle;
    if (answer_ != nullptr && !can_interrupt) continue;
    if (const auto look = call->trigger.next_look()) note(*look);
  }
  if (options_.budget.time > Duration::zero() && phase_ == Phase::running && used_up_.empty()) {
    note(began_at_ + options_.budget.time);
  }
  if (const auto until = last_answer_until()) note(*until);
  return next;
}

void AgentRun::arm() {
  const auto next = next_deadline();
  if (next == timer_at_ && timer_ != 0) return;
  if (timer_ != 0) loop_->cancel(std::exchange(timer_, 0));
  timer_at_ = next;
  if (!next) return;
  timer_ = loop_->schedule_at(*next, [this] {
    timer_ = 0;
    timer_at_.reset();
    guard([this] { advance(); });
  });
}

}  // namespace sluice

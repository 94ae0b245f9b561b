// What is kept of an AgentRun, and how it goes on with that.

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "agent/history/kept_state.hpp"
#include "agent/run/agent_run.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

constexpr std::array<std::string_view, 5> kEnds = {"completed", "failed", "cancelled", "rejected",
                                                   "unknown"};
constexpr std::array<std::string_view, 4> kWhens = {"asap", "when_idle", "silent", "interrupt"};
constexpr std::array<std::string_view, 4> kStatuses = {"completed", "incomplete", "cancelled",
                                                       "failed"};
constexpr std::array<std::string_view, 3> kRules = {"transfer", "wait", "cancel"};
constexpr std::size_t kStateVersion = 1;

/// In place of a tool that there is not any more.
const AgentTool kNoTool;

/// The only tool of this name, as its server has it, at the server of this identity, or null.
const AgentTool* find_tool(const ToolHost& host, std::string_view server, std::string_view name) {
  const AgentTool* found = nullptr;
  for (const AgentTool& each : host.tools()) {
    if (host.identity_of(each) != server || host.place_of(each).name != name) continue;
    if (found != nullptr) return nullptr;
    found = &each;
  }
  return found;
}

std::uint32_t count_in(const json::object& object, std::string_view name) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(number_in_state(object, name), UINT32_MAX));
}

/// None if there is no array.
const json::array& items_in(const json::object& object, std::string_view name) {
  static const json::array kNone;
  const json::array* const items = array_in_state(object, name);
  return items == nullptr ? kNone : *items;
}

}  // namespace

// --- keeping it ---------------------------------------------------------------------------------

json::object AgentRun::state() const {
  return state_with("unkept");
}

json::object AgentRun::snapshot() {
  for (const auto& [id, call] : calls_) {
    call->is_in_snapshot = !call->task.empty() || call->can_be_taken_up;
  }
  return state();
}

json::object AgentRun::state_with(std::string_view unkept) const {
  json::array calls;
  for (const auto& [id, call] : calls_) {
    const std::string arguments = to_json(call->arguments);
    json::object one{{"id", id}, {"tool", call->asked.name}, {"arguments", arguments}};
    // What the guardrails have changed.
    if (call->asked.arguments != arguments) one["asked"] = call->asked.arguments;
    const bool is_begun = call->state == RunningCall::State::running || call->is_marked;
    if (call->end) {
      const bool is_kept =
          std::ranges::none_of(ended_, [&](const Ended& each) { return each.event.call_id == id; });
      one["state"] = is_kept ? "ended" : unkept;
      one["end"] = {{"status", to_string(call->end->status)}, {"text", call->end->text}};
    } else {
      one["state"] = is_begun                                        ? "begun"
                     : call->state == RunningCall::State::unapproved ? "unapproved"
                                                                     : "waiting";
      one["at"] = {{"server", call->host->identity_of(*call->tool)}, {"name", call->place().name}};
    }
    if (!call->task.empty()) one["task"] = call->task;
    const CallPosition position = position_of(*call);
    if (!position.text.empty()) {
      one["position"] = position.text;
      one["chunks"] = position.next;
    }
    if (call->agent != options_.name) one["agent"] = call->agent;
    calls.emplace_back(std::move(one));
  }
  json::array inputs;
  for (const Waiting& each : inputs_) {
    inputs.emplace_back(
        json::object{{"id", each.id},
                     {"text", each.input.text},
                     {"when", kWhens.at(static_cast<std::size_t>(each.input.when))}});
  }
  json::array ids;
  for (const std::string& id : ids_) ids.emplace_back(id);
  json::object out{{"version", kStateVersion},
                   {"agent", options_.name},
                   {"is_over", phase_ == Phase::over},
                   {"budget", used_up_},
                   {"status", end_status_},
                   {"reason", end_reason_},
                   {"history", history_.state()},
                   {"calls", std::move(calls)},
                   {"inputs", std::move(inputs)},
                   {"call_ids", std::move(ids)},
                   // An answer that is being given is asked for again.
                   {"has_news", has_news_ || answer_ != nullptr},
                   {"is_new", is_new_},
                   {"last_text", last_text_},
                   {"turns", turns_},
                   {"reactions", reactions_},
                   {"last_call", last_call_},
                   {"last_input", last_input_},
                   {"usage",
                    {{"prompt", usage_.prompt},
                     {"cached", usage_.cached},
                     {"completion", usage_.completion},
                     {"cost", usage_.cost}}}};
  if (pending_handoff_) {
    out["handoff"] = {
        {"to", pending_handoff_->to.options.name},
        {"running_calls", kRules.at(static_cast<std::size_t>(pending_handoff_->running_calls))},
        {"call_id", pending_handoff_->call_id}};
  }
  return out;
}

CallPosition AgentRun::position_of(const RunningCall& call) const {
  if (call.state == RunningCall::State::ended || !call.task.empty()) return {};
  CallPosition position = events_->position_of(call.asked.id);
  return position.text.empty() ? CallPosition{call.position, call.chunks} : position;
}

void AgentRun::keep_with(StateKeeper& keeper) {
  keeper_ = &keeper;
}

void AgentRun::keep() {
  // With a part of the calls of an answer nobody could go on; it is kept with all of them.
  if (keeper_ == nullptr || is_taking_calls_) return;
  if (is_keeping_) {
    keeps_again_ = true;
    return;
  }
  is_keeping_ = true;
  keeping_ended_ = ended_.size();
  std::vector<std::shared_ptr<RunningCall>> marked;
  for (const auto& [id, call] : calls_) {
    if (call->is_marked) marked.push_back(call);
  }
  keeper_->keep(state_with("ended"), [weak = weak_from_this(), marked](const Result<void>& kept) {
    const auto self = weak.lock();
    if (self != nullptr) self->on_kept(marked, kept);
  });
}

void AgentRun::on_kept(const std::vector<std::shared_ptr<RunningCall>>& marked,
                       const Result<void>& kept) {
  is_keeping_ = false;
  if (!kept) {
    // Whoever goes on with what is kept must not find that more has happened.
    keeper_ = nullptr;
    for (const Ended& each : ended_) {
      if (each.task != nullptr) each.task->leave();
    }
    tell_ended(ended_.size());
    const std::string why = "The run's state cannot be kept: " + kept.error().message;
    if (phase_ != Phase::over) {
      for (const auto& [id, call] : calls_) {
        if (call->running != nullptr) call->running->leave();
      }
      cancel_calls("The run cannot go on");
      return end("failed", why);
    }
    last_event_->data["status"] = "failed";
    last_event_->data["reason"] = why;
    return write_last();
  }
  for (const auto& call : marked) call->is_recorded = true;
  if (!marked.empty() || keeping_ended_ > 0) later();
  tell_ended(keeping_ended_);
  if (std::exchange(keeps_again_, false)) return keep();
  write_last();
}

// --- going on with it ---------------------------------------------------------------------------

Result<void> AgentRun::restore(const json::object& state) {
  const json::value* const version = state.if_contains("version");
  if (version == nullptr || *version != kStateVersion) {
    return broken_state("it has another version than " + std::to_string(kStateVersion));
  }
  const std::string of(state.contains("agent") ? text_at(state, "agent") : options_.name);
  if (of != options_.name) {
    if (auto agent = reachable_agent(of)) adopt(*std::move(agent));
  }
  const json::object* const history = object_at(state, "history");
  if (history == nullptr) return broken_state("it has no history");
  if (auto restored = history_.restore(*history); !restored) return restored;
  for (const json::value& each : items_in(state, "calls")) {
    const json::object* const one = each.if_object();
    if (one == nullptr) return broken_state("a call is no object");
    if (auto restored = restore_call(*one, of); !restored) return restored;
  }
  // There are calls now, which the instructions may have to explain.
  history_.set_options(history_options());
  for (const std::string& id : history_.unanswered()) {
    if (!calls_.contains(id))
      return broken_state("the call " + id + " has an end that is not there");
  }
  for (const auto& [id, call] : calls_) {
    const auto open = history_.unanswered();
    if (std::ranges::find(open, id) == open.end())
      return broken_state("the call " + id + " has two ends");
  }
  for (const json::value& each : items_in(state, "inputs")) {
    const json::object* const one = each.if_object();
    const auto when = one == nullptr ? std::nullopt : enumerator_in(kWhens, text_at(*one, "when"));
    if (!when || text_at(*one, "text").empty()) return broken_state("an input has no text or time");
    inputs_.push_back(
        {std::string(text_at(*one, "id")),
         {.text = std::string(text_at(*one, "text")), .when = static_cast<RunInput::When>(*when)}});
  }
  for (const json::value& each : items_in(state, "call_ids")) {
    if (each.is_string()) ids_.emplace(each.get_string());
  }
  const json::object* const usage = object_at(state, "usage");
  if (usage != nullptr) {
    usage_ = {.prompt = number_in_state(*usage, "prompt"),
              .cached = number_in_state(*usage, "cached"),
              .completion = number_in_state(*usage, "completion"),
              .cost = amount_in_state(*usage, "cost")};
  }
  used_up_ = text_at(state, "budget");
  if (flag_in_state(state, "is_over")) {
    end_status_ = kStatuses.at(enumerator_in(kStatuses, text_at(state, "status")).value_or(0));
    end_reason_ = text_at(state, "reason");
  }
  has_news_ = flag_in_state(state, "has_news");
  is_new_ = flag_in_state(state, "is_new");
  last_text_ = text_at(state, "last_text");
  turns_ = count_in(state, "turns");
  reactions_ = count_in(state, "reactions");
  last_call_ = count_in(state, "last_call");
  last_input_ = count_in(state, "last_input");
  const json::object* const handoff = object_at(state, "handoff");
  return handoff == nullptr ? Result<void>() : restore_handoff(*handoff);
}

Result<void> AgentRun::restore_handoff(const json::object& kept) {
  const auto rule = enumerator_in(kRules, text_at(kept, "running_calls"));
  if (!rule) return broken_state("a hand-off does not say what becomes of calls");
  const auto& find = reached_.at(options_.name).handoffs;
  for (const RunHandoff& each : find ? find() : std::vector<RunHandoff>()) {
    if (each.agent != text_at(kept, "to")) continue;
    auto agent = each.reach();
    if (!agent || is_namesake(*agent)) continue;
    pending_handoff_ = {*std::move(agent), static_cast<HandoffOptions::RunningCalls>(*rule),
                        std::string(text_at(kept, "call_id"))};
    return {};
  }
  return {};
}

Result<void> AgentRun::restore_call(const json::object& kept, std::string_view of) {
  const std::string id(text_at(kept, "id"));
  const std::string_view arguments = text_at(kept, "arguments");
  ChatToolCall asked{
      .id = id,
      .name = std::string(text_at(kept, "tool")),
      .arguments = std::string(kept.contains("asked") ? text_at(kept, "asked") : arguments)};
  std::string agent(kept.contains("agent") ? text_at(kept, "agent") : of);
  if (!reached_.contains(agent)) {
    if (auto former = reachable_agent(agent)) remember(*former);
  }
  // At another agent, a tool of this name is another tool.
  const auto known = reached_.find(agent);
  ToolHost& host = known == reached_.end() ? *tools_ : *known->second.tools;
  // So it is at another server, whatever the model calls it now. The ended call needs none.
  const json::object* const at = object_at(kept, "at");
  const AgentTool* const tool = known == reached_.end() || at == nullptr
                                    ? nullptr
                                    : find_tool(host, text_at(*at, "server"), text_at(*at, "name"));
  const auto parsed = parse_json(arguments.empty() ? "{}" : arguments);
  if (!parsed || !parsed->is_object()) return broken_state("the arguments of a call are no object");
  const AgentTool& called = tool == nullptr ? kNoTool : *tool;
  ReactionPolicy policy = policy_of(called.name, called, parsed->get_object());
  const Duration grace = grace_of(called.name);
  auto call = std::make_shared<RunningCall>(static_cast<RunningCall::Owner&>(*this),
                                            std::move(asked), host, std::move(agent), called,
                                            parsed->get_object(), std::move(policy), grace);
  if (!calls_.emplace(id, call).second) return broken_state("two calls have the same id");
  const std::string_view state = text_at(kept, "state");
  const auto ends = [&](ToolEnd::Status status, std::string text) {
    call->state = RunningCall::State::ended;
    call->end = ToolEnd{.status = status, .text = std::move(text)};
  };
  call->task = text_at(kept, "task");
  call->position = text_at(kept, "position");
  call->chunks = number_in_state(kept, "chunks");
  const bool goes_on = !call->task.empty() || !call->position.empty();
  if (state == "ended" || state == "unkept") {
    const json::object* const end = object_at(kept, "end");
    const auto status =
        end == nullptr ? std::nullopt : enumerator_in(kEnds, text_at(*end, "status"));
    if (!status) return broken_state("the end of a call has no status");
    ends(static_cast<ToolEnd::Status>(*status), std::string(text_at(*end, "text")));
  } else if (state != "unapproved" && state != "waiting" && state != "begun") {
    return broken_state("a call has no state");
  } else if (tool == nullptr) {
    constexpr std::string_view kWhy =
        "its server is not there any more, or has no such tool any more";
    if (state == "begun") {
      ends(ToolEnd::Status::unknown,
           "It is not known whether the call was carried out: " + std::string(kWhy));
    } else {
      ends(ToolEnd::Status::failed, "The call was not made: " + std::string(kWhy));
    }
  } else if (state == "begun" && !goes_on && !tool->is_read_only) {
    ToolEnd end = lost_end(*tool, "the agent stopped while it ran");
    ends(end.status, std::move(end.text));
  } else if (!goes_on) {
    history_.forget_output(id);
  }
  return {};
}

void AgentRun::admit_again(RunningCall& call) {
  // One that only reads may have to be made again.
  const bool goes_on = !call.task.empty() || (!call.position.empty() && !call.tool->is_read_only);
  if (goes_on) {
    order_.push_back(call.asked.id);
    return;
  }
  // It is not made yet, or is made again.
  const auto parsed = parse_json(call.asked.arguments.empty() ? "{}" : call.asked.arguments);
  auto arguments =
      checked_arguments(call.agent, *call.tool,
                        parsed && parsed->is_object() ? parsed->get_object() : call.arguments);
  if (!arguments) {
    return end_call(call, {.status = ToolEnd::Status::failed,
                           .text = "The call was not made: " + arguments.error().message});
  }
  call.arguments = *std::move(arguments);
  await_approval(call);
}

void AgentRun::resume(std::optional<AgentInput> input) {
  begin();
  if (!input && !end_status_.empty()) return end(end_status_, end_reason_);
  for (const auto& [id, call] : calls_) {
    if (call->state != RunningCall::State::ended) admit_again(*call);
  }
  if (!input) {
    keep();
    return later();
  }
  turns_ = 0;
  reactions_ = 0;
  usage_ = {};
  used_up_.clear();
  add_input({.text = input->text(), .images = input->images()});
}

}  // namespace sluice

// What an AgentRun does with the calls of its model.

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "agent/history/tool_image.hpp"
#include "agent/run/agent_run.hpp"
#include "json/exact_numbers.hpp"
#include "json/members.hpp"
#include "protocol/log_message.hpp"

namespace sluice {
namespace {

/// How old the position of a call may be that is kept.
constexpr Duration kPositionAge = std::chrono::seconds(5);

}  // namespace

void AgentRun::take_calls(std::vector<ChatToolCall> asked) {
  is_taking_calls_ = true;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (i < options_.max_calls_of_answer) {
      take_call(asked[i]);
    } else {
      answer_call(asked[i].id, "The call was not made: at most " +
                                   std::to_string(options_.max_calls_of_answer) +
                                   " calls fit in one answer");
    }
  }
  is_taking_calls_ = false;
}

void AgentRun::answer_call(const std::string& call_id, std::string_view text) {
  history_.set_result(call_id, text);
  has_news_ = true;
}

void AgentRun::take_call(const ChatToolCall& asked) {
  const auto parsed = parse_json(asked.arguments.empty() ? "{}" : asked.arguments);
  if (!parsed || !parsed->is_object()) {
    return answer_call(asked.id, "The call was not made: its arguments are no JSON object");
  }
  if (const std::string_view why = inexact_number_in(asked.arguments); !why.empty()) {
    return answer_call(asked.id, "The call was not made: " + std::string(why));
  }
  const json::object& given = parsed->get_object();
  if (options_.offers_call_tools && asked.name == "tool_status") {
    return answer_call(asked.id, status_of(text_at(given, "call_id")));
  }
  if (options_.offers_call_tools && asked.name == "tool_cancel") {
    const std::string id(text_at(given, "call_id"));
    const Result<void> cancelled = cancel_call(id);
    return answer_call(asked.id, cancelled ? id + " is cancelled" : cancelled.error().message);
  }
  const auto handoff = std::ranges::find(handoffs_, asked.name, &RunHandoff::tool);
  if (handoff != handoffs_.end()) return take_handoff(asked, *handoff);
  const auto& tools = tools_->tools();
  const auto tool = std::ranges::find(tools, asked.name, &AgentTool::name);
  if (tool == tools.end()) {
    return answer_call(asked.id, "The call was not made: there is no tool " + asked.name);
  }
  auto arguments = checked_arguments(options_.name, *tool, given);
  if (!arguments) {
    return answer_call(asked.id, "The call was not made: " + arguments.error().message);
  }
  if (const RunningCall* const same = duplicate_of(*tool, *arguments)) {
    return answer_call(asked.id, "The call was not made: the same call is running as " +
                                     same->asked.id + "; its result will follow");
  }
  auto call = std::make_shared<RunningCall>(
      static_cast<RunningCall::Owner&>(*this), asked, *tools_, options_.name, *tool, *arguments,
      policy_of(asked.name, *tool, *arguments), grace_of(asked.name));
  calls_.emplace(asked.id, call);
  await_approval(*call);
}

Result<json::object> AgentRun::checked_arguments(std::string_view agent, const AgentTool& tool,
                                                 json::object arguments) const {
  const auto& check = reached_.find(agent)->second.guardrails.arguments;
  if (!check) return arguments;
  return check(tool, std::move(arguments));
}

void AgentRun::await_approval(RunningCall& call) {
  const ApprovalRule& rule = reached_.at(call.agent).approval;
  const std::string why = rule ? rule(*call.tool, call.arguments) : std::string();
  if (why.empty()) {
    order_.push_back(call.asked.id);
    return;
  }
  call.state = RunningCall::State::unapproved;
  write(AgentEventType::approval_required, call.asked.id,
        {{"tool", call.asked.name},
         {"server", call.tool->server},
         {"arguments", call.arguments},
         {"reason", why}});
}

ReactionPolicy AgentRun::policy_of(const std::string& name, const AgentTool& tool,
                                   const json::object& arguments) const {
  if (options_.policy_rule) {
    if (auto policy = options_.policy_rule(tool, arguments)) return *std::move(policy);
  }
  const auto own = options_.policies.find(name);
  return own != options_.policies.end() ? own->second : options_.policy;
}

Duration AgentRun::grace_of(std::string_view tool) const {
  const auto own = options_.graces.find(tool);
  return at_most_forever(own != options_.graces.end() ? own->second : options_.grace);
}

const RunningCall* AgentRun::duplicate_of(const AgentTool& tool,
                                          const json::object& arguments) const {
  if (options_.allows_duplicates) return nullptr;
  const ToolPlace place = tools_->place_of(tool);
  for (const auto& [id, call] : calls_) {
    if (call->state != RunningCall::State::ended && call->place() == place &&
        is_same_value(call->arguments, arguments)) {
      return call.get();
    }
  }
  return nullptr;
}

std::string AgentRun::status_of(std::string_view call_id) const {
  json::array all;
  for (const auto& [id, call] : calls_) {
    if (call->state == RunningCall::State::ended || (!call_id.empty() && id != call_id)) continue;
    json::object one{{"call_id", id}, {"tool", call->asked.name}};
    one["status"] = call->state == RunningCall::State::running      ? "running"
                    : call->state == RunningCall::State::unapproved ? "waits for approval"
                                                                    : "waits for its turn";
    if (call->chunks > 0) {
      one["so_far"] = as_tool_data(call->tail);
      one["seq"] = "0.." + std::to_string(call->chunks - 1);
    }
    all.emplace_back(std::move(one));
  }
  if (!all.empty()) return to_json(json::object{{"calls", std::move(all)}});
  return call_id.empty() ? "No call is running" : "No call " + std::string(call_id) + " is running";
}

void AgentRun::start_waiting() {
  // Those that are kept as begun count as running.
  const auto is_begun = [](const RunningCall& call) {
    return call.state == RunningCall::State::running || call.is_marked;
  };
  std::deque<std::string> left;
  bool must_be_kept = false;
  while (!order_.empty()) {
    const std::string id = std::move(order_.front());
    order_.pop_front();
    const auto found = calls_.find(id);
    if (found == calls_.end() || found->second->state != RunningCall::State::waiting) continue;
    const auto call = found->second;
    const auto count = [&](const auto& counts) {
      return static_cast<std::size_t>(std::ranges::count_if(calls_, [&](const auto& each) {
        return is_begun(*each.second) && counts(*each.second);
      }));
    };
    const bool has_place =
        call->is_marked || (!events_->is_full() &&
                            count([](const RunningCall&) { return true; }) < options_.max_running &&
                            count([&](const RunningCall& each) {
                              return each.place().server == call->place().server;
                            }) < options_.max_running_of_server);
    if (has_place && (keeper_ == nullptr || call->is_recorded)) {
      start_call(*call);
      continue;
    }
    if (has_place && !std::exchange(call->is_marked, true)) must_be_kept = true;
    left.push_back(id);
  }
  order_ = std::move(left);
  if (must_be_kept) keep();
}

void AgentRun::start_call(RunningCall& call) {
  call.is_marked = false;
  call.state = RunningCall::State::running;
  call.started_at = call.heard_at = loop_->clock().now();
  ++running_;
  write(AgentEventType::tool_output_started, call.asked.id,
        {{"tool", call.asked.name}, {"server", call.tool->server}, {"arguments", call.arguments}});
  if (!call.position.empty()) {
    call.can_be_taken_up = true;
    call.position_kept_at = call.started_at;
    events_->mark(call.asked.id, {call.position, call.chunks});
  }
  ToolRequest request{.arguments = call.arguments,
                      .task = call.task,
                      .position = call.position,
                      .idle_timeout = options_.idle_timeout};
  if (spans_ != nullptr) request.meta = spans_->meta_of(call.asked.id);
  call.running = call.host->start(*call.tool, std::move(request), calls_.at(call.asked.id));
}

void AgentRun::on_task(RunningCall& call, std::string id) {
  if (call.state != RunningCall::State::running) return;
  call.task = std::move(id);
  keep();
}

void AgentRun::on_position(RunningCall& call, std::string position) {
  if (phase_ == Phase::over || call.state != RunningCall::State::running) return;
  events_->mark(call.asked.id, {std::move(position), call.chunks});
  const TimePoint now = loop_->clock().now();
  const bool is_first = !std::exchange(call.can_be_taken_up, true);
  // Servers do not keep all events for ever.
  if (!is_first && now - call.position_kept_at < kPositionAge) return;
  call.position_kept_at = now;
  keep();
}

void AgentRun::on_output(RunningCall& call, ToolChunk chunk) {
  if (phase_ == Phase::over || call.state != RunningCall::State::running) return;
  const TimePoint now = loop_->clock().now();
  const std::uint64_t number = call.chunks++;
  call.heard_at = now;
  if (chunk.is_restart) {
    history_.forget_output(call.asked.id);
    call.begin_anew();
  }
  if (options_.detaches) {
    std::string shown = chunk.content.empty() ? chunk.text : text_of_block(chunk.content);
    std::optional<ChatImage> image;
    if (options_.max_images > 0 && call.is_shown()) image = image_of_block(chunk.content);
    if (options_.guardrails.chunk) {
      const std::string given = image ? shown : std::string();
      auto checked = options_.guardrails.chunk(*call.tool, std::move(shown));
      shown = checked ? *std::move(checked) : "[withheld: " + checked.error().message + "]";
      if (image && shown != given) image.reset();
    }
    call.add_unseen(shown, number, options_.max_update);
    if (image) call.add_unseen(*std::move(image), options_.max_images);
    call.trigger.on_chunk(shown, now);
    if (call.trigger.policy().when != ReactionPolicy::When::pass_through) later();
  }
  AgentEvent event{.type = AgentEventType::tool_output_delta,
                   .turn = responses_,
                   .call_id = call.asked.id,
                   .text = std::move(chunk.text),
                   .first = number,
                   .last = number,
                   .dropped = chunk.dropped};
  if (!chunk.content.empty()) event.data["content"] = std::move(chunk.content);
  if (chunk.is_restart) event.data["restart"] = true;
  const bool goes_on = events_->push(std::move(event));
  if (goes_on || call.is_paused || call.running == nullptr) return;
  call.is_paused = true;
  call.running->pause(true);
}

void AgentRun::on_progress(RunningCall& call, double progress, std::optional<double> total,
                           std::string_view message) {
  if (phase_ == Phase::over || call.state != RunningCall::State::running) return;
  call.heard_at = loop_->clock().now();
  json::object data{{"progress", progress}};
  if (total) data["total"] = *total;
  if (!message.empty()) data["message"] = message;
  const bool goes_on = events_->push({.type = AgentEventType::tool_progress,
                                      .turn = responses_,
                                      .call_id = call.asked.id,
                                      .data = std::move(data)});
  if (goes_on || call.is_paused || call.running == nullptr) return;
  call.is_paused = true;
  call.running->pause(true);
}

void AgentRun::on_end(RunningCall& call, ToolEnd end) {
  if (call.state != RunningCall::State::running) return;
  end.images = images_of_result(end.result, options_.max_images);
  if (options_.guardrails.result) {
    auto checked = options_.guardrails.result(*call.tool, std::move(end.text));
    if (!checked) end.images.clear();
    end.text = checked ? *std::move(checked) : "[withheld: " + checked.error().message + "]";
  }
  end_call(call, std::move(end));
}

void AgentRun::end_call(RunningCall& call, ToolEnd end) {
  const std::string& id = call.asked.id;
  if (call.state == RunningCall::State::running) --running_;
  call.state = RunningCall::State::ended;
  call.is_marked = false;
  ended_.push_back({.event = {.type = AgentEventType::tool_output_done,
                              .turn = responses_,
                              .call_id = id,
                              .text = end.text,
                              .data = {{"status", to_string(end.status)}, {"result", end.result}}},
                    .task = call.task.empty() ? nullptr : std::move(call.running)});
  call.running.reset();
  call.end = std::move(end);
  keeper_ == nullptr ? tell_ended(ended_.size()) : keep();
  later();
}

void AgentRun::tell_ended(std::size_t count) {
  const auto end = ended_.begin() + static_cast<std::ptrdiff_t>(count);
  for (auto each = ended_.begin(); each != end; ++each) events_->push(std::move(each->event));
  ended_.erase(ended_.begin(), end);
}

void AgentRun::cancel_calls(std::string_view why) {
  cancel_waiting_calls(why);
  for (const auto& [id, call] : calls_) {
    if (call->state == RunningCall::State::ended) continue;
    end_call(*call, {.status = ToolEnd::Status::cancelled, .text = std::string(why)});
  }
}

void AgentRun::cancel_waiting_calls(std::string_view why) {
  for (const auto& [id, call] : calls_) {
    const bool waits =
        call->state == RunningCall::State::waiting || call->state == RunningCall::State::unapproved;
    if (!waits) continue;
    end_call(*call, {.status = ToolEnd::Status::cancelled, .text = std::string(why)});
  }
  order_.clear();
}

RunningCall* AgentRun::open_call(std::string_view call_id) const {
  const auto found = calls_.find(call_id);
  const bool is_open = found != calls_.end() && found->second->state != RunningCall::State::ended;
  return is_open ? found->second.get() : nullptr;
}

Result<void> AgentRun::cancel_call(std::string_view call_id) {
  RunningCall* const call = open_call(call_id);
  if (call == nullptr) return fail(-32602, "No call " + std::string(call_id) + " is running");
  end_call(*call, {.status = ToolEnd::Status::cancelled, .text = "The call was cancelled"});
  return {};
}

Result<void> AgentRun::set_policy(std::string_view call_id, ReactionPolicy policy) {
  if (auto checked = check(policy); !checked) return checked;
  RunningCall* const call = open_call(call_id);
  if (call == nullptr) return fail(-32602, "No call " + std::string(call_id) + " is running");
  call->trigger.set_policy(std::move(policy));
  call->has_own_policy = true;
  call->is_exhausted = call->trigger.is_exhausted();
  later();
  return {};
}

Result<void> AgentRun::approve(std::string_view call_id) {
  if (phase_ != Phase::running) return fail(-32602, "The run begins no more calls");
  const auto found = calls_.find(call_id);
  if (found == calls_.end() || found->second->state != RunningCall::State::unapproved) {
    return fail(-32602, "No call " + std::string(call_id) + " waits for approval");
  }
  found->second->state = RunningCall::State::waiting;
  order_.push_back(found->first);
  later();
  return {};
}

Result<void> AgentRun::reject(std::string_view call_id, std::string_view reason) {
  const auto found = calls_.find(call_id);
  if (found == calls_.end() || found->second->state != RunningCall::State::unapproved) {
    return fail(-32602, "No call " + std::string(call_id) + " waits for approval");
  }
  std::string text = "The user rejected this call";
  if (!reason.empty()) text += ": " + std::string(reason);
  end_call(*found->second, {.status = ToolEnd::Status::rejected, .text = std::move(text)});
  return {};
}

}  // namespace sluice

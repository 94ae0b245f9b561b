#include "agent/spans/run_spans.hpp"

#include <cstddef>
#include <span>
#include <utility>

#include "core/crypto/random.hpp"
#include "core/log/log.hpp"
#include "core/log/log_limit.hpp"
#include "core/text/text.hpp"
#include "json/members.hpp"
#include "protocol/syntax/trace_context.hpp"

namespace sluice {
namespace {

constexpr std::size_t kTraceIdBytes = 16;
constexpr std::size_t kSpanIdBytes = 8;

/// Random digits; never all zero, which is no id (W3C Trace Context, section 3.2.2).
std::string new_id(std::size_t bytes) {
  std::string id(bytes, '\0');
  random_bytes(std::as_writable_bytes(std::span(id)));
  if (id.back() == '\0') id.back() = '\1';
  return to_hex(id);
}

/// The parent, or none if it is invalid.
TraceContext valid(const TraceContext& parent) {
  const auto read = decode_trace_context({{"traceparent", parent.traceparent},
                                          {"tracestate", parent.tracestate},
                                          {"baggage", parent.baggage}});
  return read == nullptr ? TraceContext() : *read;
}

void add_usage(Span& span, const json::object* usage) {
  if (usage == nullptr) return;
  if (const json::value* const read = usage->if_contains("input_tokens")) {
    span.attributes["gen_ai.usage.input_tokens"] = *read;
  }
  if (const json::value* const written = usage->if_contains("output_tokens")) {
    span.attributes["gen_ai.usage.output_tokens"] = *written;
  }
}

}  // namespace

RunSpans::RunSpans(std::shared_ptr<SpanExporter> exporter, const TraceContext& parent,
                   std::string run_id, const Clock& clock,
                   std::chrono::system_clock::time_point now)
    : exporter_(std::move(exporter)),
      parent_(valid(parent)),
      run_id_(std::move(run_id)),
      clock_(&clock),
      wall_(now),
      began_(clock.now()) {
  const bool has_parent = !parent_.traceparent.empty();
  if (exporter_ == nullptr || (has_parent && !parent_.sampled())) return;
  trace_id_ = has_parent ? std::string(parent_.trace_id()) : new_id(kTraceIdBytes);
}

RunSpans::~RunSpans() {
  if (run_) end_run("cancelled", nullptr);
}

std::chrono::system_clock::time_point RunSpans::now() const {
  using Step = std::chrono::system_clock::duration;
  return wall_ + std::chrono::duration_cast<Step>(clock_->now() - began_);
}

Span RunSpans::begin(std::string name, std::string_view operation, std::string parent_id) const {
  return {
      .trace_id = trace_id_,
      .span_id = new_id(kSpanIdBytes),
      .parent_id = std::move(parent_id),
      .trace_state = parent_.tracestate,
      .name = std::move(name),
      .began = now(),
      .attributes = {{"gen_ai.operation.name", operation}, {"gen_ai.conversation.id", run_id_}}};
}

void RunSpans::end(Span span) {
  static LogLimit failures;
  span.ended = now();
  try {
    exporter_->take(std::move(span));
  } catch (...) {
    log_exception(failures, "a span could not be exported");
  }
}

void RunSpans::on_event(const AgentEvent& event) {
  if (trace_id_.empty()) return;
  if (event.type == AgentEventType::run_started) {
    const std::string agent(text_at(event.data, "agent"));
    run_ = begin("invoke_agent " + agent, "invoke_agent", std::string(parent_.parent_id()));
    run_->attributes["gen_ai.agent.name"] = agent;
    run_->attributes["gen_ai.request.model"] = text_at(event.data, "model");
    return;
  }
  if (!run_) return;
  switch (event.type) {
    case AgentEventType::response_created: {
      const json::object* const response = object_at(event.data, "response");
      const std::string model(response == nullptr ? "" : text_at(*response, "model"));
      answer_ = begin("chat " + model, "chat", run_->span_id);
      answer_->kind = Span::Kind::client;
      answer_->attributes["gen_ai.request.model"] = model;
      last_answer_ = answer_->span_id;
      break;
    }
    case AgentEventType::response_completed:
    case AgentEventType::response_incomplete:
    case AgentEventType::response_failed:
      end_answer(event);
      break;
    case AgentEventType::tool_output_started: {
      const std::string tool(text_at(event.data, "tool"));
      CallSpan call{.span = begin("execute_tool " + tool, "execute_tool", run_->span_id)};
      call.span.attributes["gen_ai.tool.name"] = tool;
      call.span.attributes["gen_ai.tool.call.id"] = event.call_id;
      calls_.insert_or_assign(event.call_id, std::move(call));
      break;
    }
    case AgentEventType::tool_output_delta:
      if (const auto call = calls_.find(event.call_id); call != calls_.end()) ++call->second.chunks;
      break;
    case AgentEventType::tool_output_done:
      end_call(event);
      break;
    case AgentEventType::reaction_started:
      begin_reactions(event);
      break;
    case AgentEventType::reaction_done:
      end_reactions();
      break;
    case AgentEventType::run_done:
      end_run(text_at(event.data, "status"), object_at(event.data, "usage"));
      break;
    default:
      break;
  }
}

void RunSpans::end_answer(const AgentEvent& event) {
  if (!answer_) return;
  Span span = *std::exchange(answer_, std::nullopt);
  const json::object* const response = object_at(event.data, "response");
  if (response != nullptr) {
    span.attributes["gen_ai.response.id"] = text_at(*response, "id");
    add_usage(span, object_at(*response, "usage"));
    const json::object* const details = object_at(*response, "incomplete_details");
    if (details != nullptr) {
      span.attributes["gen_ai.response.finish_reasons"] = json::array{text_at(*details, "reason")};
    }
    if (const json::object* const error = object_at(*response, "error")) {
      // A model's server may quote what it was asked.
      span.error = "";
      span.attributes["error.type"] = text_at(*error, "code");
    }
  }
  end(std::move(span));
}

void RunSpans::end_call(const AgentEvent& event) {
  // Of a call that was never made there is no span.
  auto call = calls_.extract(event.call_id);
  if (call.empty()) return;
  Span& span = call.mapped().span;
  const std::string_view status = text_at(event.data, "status");
  span.attributes["sluice.tool.status"] = status;
  span.attributes["sluice.tool.chunks"] = call.mapped().chunks;
  if (status == "failed" || status == "unknown") {
    span.error = "";
    span.attributes["error.type"] = "tool_error";
  }
  end(std::move(span));
}

void RunSpans::begin_reactions(const AgentEvent& event) {
  end_reactions();
  last_answer_.clear();
  const json::value* const ids = event.data.if_contains("call_ids");
  if (ids == nullptr || !ids->is_array()) return;
  for (const json::value& each : ids->get_array()) {
    const auto call =
        each.is_string() ? calls_.find(std::string_view(each.get_string())) : calls_.end();
    if (call == calls_.end()) continue;
    const std::string tool(text_at(call->second.span.attributes, "gen_ai.tool.name"));
    Span span = begin("react_to_tool " + tool, "react_to_tool", call->second.span.span_id);
    span.attributes["gen_ai.tool.name"] = tool;
    span.attributes["gen_ai.tool.call.id"] = call->first;
    reactions_.push_back(std::move(span));
  }
}

void RunSpans::end_reactions() {
  for (Span& each : std::exchange(reactions_, {})) {
    if (!last_answer_.empty()) each.links.push_back(last_answer_);
    end(std::move(each));
  }
}

void RunSpans::end_run(std::string_view status, const json::object* usage) {
  end_reactions();
  if (answer_) end(*std::exchange(answer_, std::nullopt));
  for (auto& [id, call] : std::exchange(calls_, {})) end(std::move(call.span));
  Span span = *std::exchange(run_, std::nullopt);
  span.attributes["sluice.run.status"] = status;
  add_usage(span, usage);
  if (status == "failed") {
    span.error = "";
    span.attributes["error.type"] = "run_failed";
  }
  end(std::move(span));
}

json::object RunSpans::meta_of(std::string_view call_id) const {
  json::object meta;
  const auto call = calls_.find(call_id);
  if (call != calls_.end()) {
    meta["traceparent"] = "00-" + trace_id_ + "-" + call->second.span.span_id + "-01";
  } else if (!parent_.traceparent.empty()) {
    meta["traceparent"] = parent_.traceparent;
  }
  if (!parent_.tracestate.empty()) meta["tracestate"] = parent_.tracestate;
  if (!parent_.baggage.empty()) meta["baggage"] = parent_.baggage;
  return meta;
}

}  // namespace sluice

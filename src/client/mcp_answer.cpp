#include "client/mcp_answer.hpp"

#include <utility>

#include "client/stream_answer.hpp"
#include "core/version.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

constexpr std::string_view kRevision = "2026-07-28";

/// The concatenated texts in a tool result's content.
std::string content_text(const json::object& result) {
  std::string out;
  const json::value* content = result.if_contains("content");
  if (content == nullptr || !content->is_array()) return out;
  for (const json::value& block : content->get_array()) {
    const json::object* members = block.if_object();
    const json::value* text = members == nullptr ? nullptr : members->if_contains("text");
    if (text != nullptr && text->is_string()) out.append(text->get_string());
  }
  return out;
}

}  // namespace

McpAnswer::McpAnswer(AnswerRequest request, AnswerPort& port, AnswerSink& sink)
    : request_(std::move(request)), port_(&port), sink_(&sink) {}

void McpAnswer::start() {
  const json::object meta{
      {"progressToken", request_.first_id},
      {"io.modelcontextprotocol/protocolVersion", kRevision},
      {"io.modelcontextprotocol/clientInfo", {{"name", "sluice"}, {"version", kVersion}}},
      {"io.modelcontextprotocol/clientCapabilities", json::object()}};
  const json::object message{
      {"jsonrpc", "2.0"},
      {"id", request_.first_id},
      {"method", "tools/call"},
      {"params",
       {{"name", request_.tool}, {"arguments", std::move(request_.params)}, {"_meta", meta}}}};
  port_->send({.method = "POST",
               .target = "/mcp",
               .headers = {{"Content-Type", "application/json"},
                           {"Accept", "application/json, text/event-stream"},
                           {"MCP-Protocol-Version", std::string(kRevision)},
                           {"Mcp-Method", "tools/call"},
                           {"Mcp-Name", request_.tool}},
               .body = to_json(message)});
}

void McpAnswer::cancel() {
  AnswerEnd end;
  end.outcome = AnswerEnd::Outcome::cancelled;
  finish(end);
}

void McpAnswer::on_head(int status, std::string_view content_type) {
  body_.begin(status);
  is_events_ = content_type.starts_with("text/event-stream");
}

void McpAnswer::on_body(std::string_view bytes) {
  if (ended_) return;
  if (!is_events_) {
    if (!body_.append(bytes)) {
      fail(AnswerEnd::Outcome::failed,
           {kInternalError, "The server's reply is larger than 64 MiB; limit it with max_tokens"});
    }
    return;
  }
  const auto fed = events_.feed(bytes, [this](const SseEvent& event) { take_message(event.data); });
  if (!fed && !ended_) fail(AnswerEnd::Outcome::failed, fed.error());
}

void McpAnswer::on_complete() {
  if (ended_) return;
  if (is_events_) {
    fail(AnswerEnd::Outcome::unreachable,
         {kInternalError, "The connection ended before the answer did; try again"});
    return;
  }
  const auto result = body_.parse();
  if (result) {
    take_result(*result);
  } else {
    fail(is_passing_trouble(result.error().code) ? AnswerEnd::Outcome::unreachable
                                                 : AnswerEnd::Outcome::failed,
         result.error());
  }
}

void McpAnswer::take_message(std::string_view text) {
  if (ended_) return;
  const auto parsed = parse_json(text);
  const json::object* message = parsed ? parsed->if_object() : nullptr;
  if (message == nullptr) {
    fail(AnswerEnd::Outcome::failed,
         {kInternalError, "The server sent an event that is not a JSON object"});
    return;
  }
  if (const auto error = error_of(*message)) {
    fail(AnswerEnd::Outcome::failed, *error);
    return;
  }
  if (const json::value* result = message->if_contains("result");
      result != nullptr && result->is_object()) {
    take_result(result->get_object());
    return;
  }
  const json::value* method = message->if_contains("method");
  const json::value* params = message->if_contains("params");
  if (method != nullptr && *method == "notifications/progress" && params != nullptr &&
      params->is_object()) {
    take_progress(params->get_object());
  }
}

void McpAnswer::take_progress(const json::object& params) {
  const json::value* token = params.if_contains("progressToken");
  const json::value* text = params.if_contains("message");
  if (token == nullptr || *token != json::value(request_.first_id) || text == nullptr ||
      !text->is_string() || text->get_string().empty()) {
    return;
  }
  any_progress_ = true;
  sink_->on_delta({AnswerDelta::Kind::text, text->get_string()});
}

void McpAnswer::take_result(const json::object& result) {
  const std::string text = content_text(result);
  if (const json::value* failed = result.if_contains("isError");
      failed != nullptr && failed->is_bool() && failed->get_bool()) {
    fail(AnswerEnd::Outcome::failed,
         {kInternalError, text.empty() ? "The tool failed without saying why" : text});
    return;
  }
  // The server need not send progress. Without it the result contains the whole text.
  if (!any_progress_ && !text.empty()) sink_->on_delta({AnswerDelta::Kind::text, text});
  const json::value* structured = result.if_contains("structuredContent");
  const json::object& members =
      structured != nullptr && structured->is_object() ? structured->get_object() : result;
  const json::value* calls = members.if_contains("tool_calls");
  if (calls != nullptr && calls->is_array()) {
    for (const json::value& call : calls->get_array()) {
      sink_->on_delta({AnswerDelta::Kind::tool_call, to_json(call)});
    }
  }
  finish(decode_end(members));
}

void McpAnswer::on_lost(const Error& why) {
  fail(AnswerEnd::Outcome::unreachable, why);
}

void McpAnswer::fail(AnswerEnd::Outcome outcome, const Error& error) {
  AnswerEnd end;
  end.outcome = outcome;
  end.error = error;
  finish(end);
}

void McpAnswer::finish(const AnswerEnd& end) {
  if (ended_) return;
  ended_ = true;
  port_->close();
  sink_->on_end(end);
}

}  // namespace sluice

#include "agent/events/response_writer.hpp"

#include <chrono>
#include <utility>

#include "agent/events/message_item.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

json::object usage_object(const Usage& usage) {
  return {
      {"input_tokens", usage.prompt_tokens},
      {"input_tokens_details", {{"cached_tokens", usage.cached_tokens}, {"cache_write_tokens", 0}}},
      {"output_tokens", usage.completion_tokens},
      {"output_tokens_details", {{"reasoning_tokens", usage.reasoning_tokens}}},
      {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

std::int64_t unix_seconds() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(since).count();
}

}  // namespace

ResponseWriter::ResponseWriter(RunEvents& events, std::string id, std::string_view model,
                               std::uint32_t turn)
    : events_(&events),
      id_(std::move(id)),
      model_(model),
      turn_(turn),
      created_at_(unix_seconds()) {
  write(AgentEventType::response_created, {}, {{"response", response("in_progress")}});
  write(AgentEventType::response_in_progress, {}, {{"response", response("in_progress")}});
}

bool ResponseWriter::write(AgentEventType type, std::string text, json::object data) {
  AgentEvent event{.type = type, .turn = turn_, .text = std::move(text), .data = std::move(data)};
  const bool is_of_item =
      type != AgentEventType::response_created && type != AgentEventType::response_in_progress &&
      type != AgentEventType::response_completed && type != AgentEventType::response_incomplete &&
      type != AgentEventType::response_failed;
  if (is_of_item) {
    event.output_index = index_;
    if (type != AgentEventType::output_item_added && type != AgentEventType::output_item_done) {
      event.item_id = item_id_;
      if (open_ == Open::message || open_ == Open::reasoning) event.content_index = 0;
    }
  }
  return events_->push(std::move(event));
}

json::object ResponseWriter::response(std::string_view status) const {
  return {{"id", id_},
          {"object", "response"},
          {"created_at", created_at_},
          {"status", status},
          {"model", model_},
          {"output", output_},
          {"output_text", output_text_},
          {"error", nullptr},
          {"incomplete_details", nullptr},
          {"usage", usage_object({})},
          // What repeats a request is left empty, because the request is the run's own.
          {"instructions", nullptr},
          {"tools", json::array()},
          {"tool_choice", "auto"},
          {"parallel_tool_calls", true},
          {"temperature", nullptr},
          {"top_p", nullptr},
          {"metadata", json::object()},
          {"access_programs", nullptr}};
}

json::object ResponseWriter::part() const {
  if (open_ == Open::reasoning) return {{"type", "reasoning_text"}, {"text", text_}};
  return text_part(text_);
}

json::object ResponseWriter::item(std::string_view status) const {
  const bool has_text = status != "in_progress";
  json::array content;
  if (has_text) content.emplace_back(part());
  if (open_ == Open::reasoning) {
    return {{"id", item_id_},
            {"type", "reasoning"},
            {"status", status},
            {"summary", json::array()},
            {"content", std::move(content)}};
  }
  return message_item(item_id_, status, std::move(content));
}

void ResponseWriter::begin_item(json::object item) {
  write(AgentEventType::output_item_added, {}, {{"item", std::move(item)}});
}

void ResponseWriter::end_item(json::object item) {
  output_.emplace_back(item);
  write(AgentEventType::output_item_done, {}, {{"item", std::move(item)}});
}

void ResponseWriter::open(Open kind) {
  if (open_ == kind) return;
  close("completed");
  ++index_;
  item_id_ = (kind == Open::message ? "msg_" : "rs_") + id_ + "_" + std::to_string(index_);
  open_ = kind;
  text_.clear();
  begin_item(item("in_progress"));
  write(AgentEventType::content_part_added, {}, {{"part", part()}});
}

void ResponseWriter::close(std::string_view status) {
  if (open_ == Open::nothing) return;
  if (std::exchange(open_, open_ == Open::call ? Open::nothing : open_) == Open::call) {
    write(AgentEventType::function_call_arguments_done, text_, {{"name", call_.at("name")}});
    call_["status"] = status;
    call_["arguments"] = text_;
    return end_item(std::move(call_));
  }
  write(open_ == Open::message ? AgentEventType::output_text_done
                               : AgentEventType::reasoning_text_done,
        text_);
  write(AgentEventType::content_part_done, {}, {{"part", part()}});
  end_item(item(status));
  open_ = Open::nothing;
}

bool ResponseWriter::text(std::string_view delta) {
  // A call's item is not broken off: what comes between its pieces waits for its end.
  if (open_ == Open::call) {
    held_text_ += delta;
    return true;
  }
  open(Open::message);
  text_ += delta;
  output_text_ += delta;
  return write(AgentEventType::output_text_delta, std::string(delta));
}

bool ResponseWriter::reasoning(std::string_view delta) {
  if (open_ == Open::call) return true;  // nobody needs it there
  open(Open::reasoning);
  text_ += delta;
  return write(AgentEventType::reasoning_text_delta, std::string(delta));
}

void ResponseWriter::open_call(const std::string& call_id, std::string_view name) {
  close("completed");
  ++index_;
  item_id_ = "fc_" + id_ + "_" + std::to_string(index_);
  open_ = Open::call;
  text_.clear();
  call_ = {
      {"id", item_id_}, {"type", "function_call"}, {"status", "in_progress"}, {"call_id", call_id},
      {"name", name},   {"arguments", ""}};
  begin_item(call_);
}

bool ResponseWriter::call_part(const std::string& call_id, std::string_view name,
                               std::string_view piece) {
  if (open_ != Open::call) open_call(call_id, name);
  if (text_at(call_, "call_id") != call_id) return true;
  text_ += piece;
  return write(AgentEventType::function_call_arguments_delta, std::string(piece));
}

bool ResponseWriter::call(const ChatToolCall& call) {
  const bool is_open = open_ == Open::call && text_at(call_, "call_id") == call.id;
  if (!is_open) open_call(call.id, call.name);
  bool goes_on = true;
  // Pieces that say the same with other blanks stand as they are.
  if (!is_same_json(text_, call.arguments)) {
    // What pieces did not say, because they were withheld or repaired.
    const bool is_prefix = call.arguments.starts_with(text_);
    const std::string rest = is_prefix ? call.arguments.substr(text_.size()) : std::string();
    goes_on = rest.empty() || write(AgentEventType::function_call_arguments_delta, rest);
    text_ = call.arguments;
  }
  close("completed");
  if (!held_text_.empty()) text(std::exchange(held_text_, {}));
  return goes_on;
}

void ResponseWriter::end(const Completion& completion) {
  using Reason = Completion::Reason;
  const bool is_whole =
      completion.reason == Reason::stop || completion.reason == Reason::tool_calls;
  close(is_whole ? "completed" : "incomplete");
  if (!held_text_.empty()) {
    text(std::exchange(held_text_, {}));
    close(is_whole ? "completed" : "incomplete");
  }
  const bool has_failed = completion.reason == Reason::error;
  const bool is_cut = completion.reason == Reason::length;
  json::object done = response(is_whole     ? "completed"
                               : has_failed ? "failed"
                               : is_cut     ? "incomplete"
                                            : "cancelled");
  done["usage"] = usage_object(completion.usage);
  if (has_failed) {
    done["error"] = {{"code", "server_error"},
                     {"message", completion.error ? completion.error->message : "no answer"}};
  }
  if (is_cut) done["incomplete_details"] = {{"reason", "max_output_tokens"}};
  write(is_whole     ? AgentEventType::response_completed
        : has_failed ? AgentEventType::response_failed
                     : AgentEventType::response_incomplete,
        {}, {{"response", std::move(done)}});
}

}  // namespace sluice

#pragma once

#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/engine.hpp"
#include "json/json.hpp"
#include "json/members.hpp"
#include "sluice/agent_event.hpp"

namespace sluice {

/// A piece of what a simulated tool writes. Each is there once: `life` is the process of the run.
inline std::string simulated_chunk(std::size_t life, std::string_view call_id, std::uint64_t n) {
  return "<" + std::to_string(life) + ":" + std::string(call_id) + "." + std::to_string(n) + ">";
}

/// What must hold of the events of a run, from its first to its last.
class SimulatedEvents {
 public:
  struct Call {
    std::uint64_t next = 0;  // the number of the next chunk
    std::optional<std::string> end = {};
  };

  explicit SimulatedEvents(std::size_t life) : life_(life) {}

  void check(const AgentEvent& event) {
    EXPECT_FALSE(is_done()) << name_of(event.type) << " after the end";
    EXPECT_EQ(event.sequence_number, next_number_++);
    switch (event.type) {
      case AgentEventType::approval_required:
        EXPECT_TRUE(unapproved.insert(event.call_id).second);
        return;
      case AgentEventType::tool_output_started:
        EXPECT_TRUE(calls_.emplace(event.call_id, Call{}).second) << "begun twice";
        return;
      case AgentEventType::tool_output_delta:
      case AgentEventType::tool_progress:
        return check_output(event);
      case AgentEventType::tool_output_done: {
        // A call that never ran has an end too.
        Call& call = calls_[event.call_id];
        EXPECT_FALSE(call.end) << "ended twice";
        call.end = event.text;
        unapproved.erase(event.call_id);
        return;
      }
      case AgentEventType::run_done:
        EXPECT_FALSE(is_responding_);
        status_ = text_at(event.data, "status");
        reason_ = text_at(event.data, "reason");
        EXPECT_TRUE(status_ == "completed" || status_ == "cancelled" || !reason_.empty());
        return;
      default:
        check_response(event);
    }
  }

  [[nodiscard]] bool is_done() const { return !status_.empty(); }
  /// How the run has ended.
  [[nodiscard]] const std::string& status() const { return status_; }
  [[nodiscard]] const std::string& reason() const { return reason_; }
  [[nodiscard]] const std::map<std::string, Call>& calls() const { return calls_; }

  std::set<std::string> unapproved;  // calls that wait for approval

 private:
  void check_response(const AgentEvent& event) {
    switch (event.type) {
      case AgentEventType::response_created:
        EXPECT_FALSE(is_responding_);
        is_responding_ = true;
        items_ = 0;
        break;
      case AgentEventType::response_completed:
      case AgentEventType::response_incomplete:
      case AgentEventType::response_failed:
        EXPECT_TRUE(is_responding_);
        EXPECT_FALSE(is_item_open_);
        EXPECT_EQ(event.data.at("response").at("output").as_array().size(), items_);
        is_responding_ = false;
        break;
      case AgentEventType::output_item_added:
        EXPECT_TRUE(is_responding_);
        EXPECT_FALSE(is_item_open_);
        EXPECT_EQ(event.output_index, static_cast<std::int32_t>(items_));
        is_item_open_ = true;
        break;
      case AgentEventType::output_item_done:
        EXPECT_TRUE(is_item_open_);
        EXPECT_EQ(event.output_index, static_cast<std::int32_t>(items_++));
        EXPECT_FALSE(is_part_open_);
        is_item_open_ = false;
        break;
      case AgentEventType::content_part_added:
        EXPECT_TRUE(is_item_open_);
        is_part_open_ = true;
        break;
      case AgentEventType::content_part_done:
        EXPECT_TRUE(is_part_open_);
        is_part_open_ = false;
        break;
      case AgentEventType::output_text_delta:
        EXPECT_TRUE(is_part_open_);
        break;
      default:
        break;
    }
  }

  /// As whoever reads the JSON is told of it.
  void check_output(const AgentEvent& event) {
    const auto found = calls_.find(event.call_id);
    ASSERT_NE(found, calls_.end()) << "output of what was not begun";
    std::uint64_t& next = found->second.next;
    const json::object told = to_object(event, "run");
    if (const json::value* const dropped = told.if_contains("dropped")) {
      next += dropped->to_number<std::uint64_t>();
    }
    if (event.type == AgentEventType::tool_progress) return;
    EXPECT_EQ(event.first, next);
    std::string expected;
    for (std::uint64_t n = event.first; n <= event.last; ++n) {
      expected += simulated_chunk(life_, event.call_id, n);
    }
    EXPECT_EQ(event.text, expected);
    next = event.last + 1;
  }

  const std::size_t life_;
  std::map<std::string, Call> calls_;
  std::uint64_t next_number_ = 0;
  std::size_t items_ = 0;
  bool is_responding_ = false;
  bool is_item_open_ = false;
  bool is_part_open_ = false;
  std::string status_;
  std::string reason_;
};

/// The end of a call as `messages` show it: its result, or the update that is final. Nothing, if it
/// still seems to run.
inline std::optional<std::string> shown_end(const std::vector<ChatMessage>& messages,
                                            std::string_view call_id) {
  const std::string mark = "[tool update call_id=" + std::string(call_id) + " ";
  const std::string placeholder = R"({"status":"running","call_id":")" + std::string(call_id);
  for (const ChatMessage& message : messages) {
    const std::string& text = message.content;
    if (message.tool_call_id == call_id && !text.starts_with(placeholder)) return text;
    for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
      const std::size_t line = text.find('\n', at);
      if (text.substr(at, line - at).contains(" final - ")) return text.substr(line + 1);
    }
  }
  return std::nullopt;
}

/// A chunk that the model is shown without having asked for it with tool_status.
struct ShownChunk {
  std::string chunk;
  std::string call_id;
  bool is_in_placeholder = false;  // of its own call
};

inline std::vector<ShownChunk> shown_chunks(const std::vector<ChatMessage>& messages) {
  std::vector<ShownChunk> out;
  for (const ChatMessage& message : messages) {
    const std::string& text = message.content;
    // Other things may be joined to the answer of tool_status.
    std::size_t at = message.tool_name == "tool_status" ? text.find("\n\n[") : 0;
    for (at = text.find('<', at); at != std::string::npos; at = text.find('<', at + 1)) {
      const std::size_t colon = text.find(':', at);
      const std::size_t point = text.find('.', colon);
      ShownChunk shown{.chunk = text.substr(at, text.find('>', at) + 1 - at),
                       .call_id = text.substr(colon + 1, point - colon - 1)};
      shown.is_in_placeholder = message.tool_call_id == shown.call_id;
      out.push_back(std::move(shown));
    }
  }
  return out;
}

}  // namespace sluice

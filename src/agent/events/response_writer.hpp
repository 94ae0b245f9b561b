#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "agent/events/run_events.hpp"
#include "engine/engine.hpp"
#include "json/json.hpp"

namespace sluice {

/// Writes the events of one answer of the model, well-formed as the Responses API has them: every
/// item that is added is also done, and every part; indices count from 0.
class ResponseWriter {
 public:
  /// Writes that the answer begins. `id` is its own, `turn` its number in the run.
  ResponseWriter(RunEvents& events, std::string id, std::string_view model, std::uint32_t turn);

  // These return false if the model should pause; see RunEvents::push().

  bool text(std::string_view delta);
  bool reasoning(std::string_view delta);
  /// A piece of the arguments of a call, whose own are not whole yet. Ignored while those of
  /// another call are written.
  bool call_part(const std::string& call_id, std::string_view name, std::string_view piece);
  /// A whole call, whatever pieces were written of it.
  bool call(const ChatToolCall& call);

  /// Ends the answer: completed, incomplete or failed.
  void end(const Completion& completion);

  /// The text that was written.
  [[nodiscard]] const std::string& output_text() const { return output_text_; }

 private:
  enum class Open : std::uint8_t { nothing, message, reasoning, call };

  bool write(AgentEventType type, std::string text = {}, json::object data = {});
  void open(Open kind);
  void open_call(const std::string& call_id, std::string_view name);
  void close(std::string_view status);
  [[nodiscard]] json::object part() const;
  [[nodiscard]] json::object item(std::string_view status) const;
  void begin_item(json::object item);
  void end_item(json::object item);
  [[nodiscard]] json::object response(std::string_view status) const;

  RunEvents* events_;
  std::string id_;
  std::string model_;
  std::uint32_t turn_;
  std::int64_t created_at_;  // in seconds since 1970
  std::int32_t index_ = -1;  // of the current item
  std::string item_id_;
  Open open_ = Open::nothing;
  std::string text_;       // of the open item; of a call the arguments
  json::object call_;      // the open call's item
  std::string held_text_;  // that came between its pieces
  std::string output_text_;
  json::array output_;  // the items that are done
};

}  // namespace sluice

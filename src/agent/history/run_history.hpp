#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "engine/engine.hpp"
#include "json/json.hpp"

namespace sluice {

/// What a tool has written, in terms of its chunks, which are numbered from 0.
struct OutputRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

struct RunHistoryOptions {
  std::string instructions = {};  // a system message; empty: none
  /// Whether the model's template demands that users and assistants alternate. What would make a
  /// second message of a user in a row is then appended to the last message, with a mark.
  bool alternates = false;
  /// The most bytes of one interim update. Of a longer one the model is shown the end.
  std::size_t max_update = std::size_t{8} << 10U;
  /// The most bytes of a result. Of a longer one the model is shown the beginning and the end.
  std::size_t max_result = std::size_t{256} << 10U;
  /// How many images the model is shown: the last ones. Others it knows by their text.
  std::size_t max_images = 0;
};

/// What the model of a run is shown. It is valid for a strict chat API at each call of the model:
/// behind a message with calls of tools come exactly one message of the role "tool" for each of
/// them, in the order of the calls, and the last message is none of the model's.
///
/// A call that still runs when the model is called again is answered with a placeholder. What it
/// writes afterwards, and its result, come as updates: data that is marked as untrusted, never as
/// words of the model. As long as nothing follows the placeholders of a round, they are rewritten
/// instead, so that a result that comes soon looks as if nobody had waited for it.
///
/// A state machine without input and output. Not thread-safe.
class RunHistory {
 public:
  explicit RunHistory(RunHistoryOptions options);
  /// Goes on with other instructions. Limits are for what is added from now on.
  void set_options(RunHistoryOptions options);

  /// A text of the user, with images. Call only if is_answered().
  void add_input(std::string_view text, std::vector<ChatImage> images = {});
  /// The same, but as a part of a result that it would stand right behind, which some models
  /// refuse.
  void add_last_input(std::string_view text);
  /// What the model has answered. `calls` have ids that were not used before. Call only if
  /// is_answered(). An answer without text and calls leaves no trace. One right behind another goes
  /// on with it. `server_data`: see ChatMessage.
  void add_answer(std::string text, std::vector<ChatToolCall> calls = {},
                  std::string server_data = {});

  /// The end of a call. Call once for each. `unseen`: what it has written since the last time.
  void set_result(std::string_view call_id, std::string_view text,
                  std::optional<OutputRange> unseen = {}, std::vector<ChatImage> images = {});
  /// What a call has written since the last time, for the model to see; `cut`: how many bytes are
  /// missing at its beginning. Ignored if the call has ended.
  void add_output(std::string_view call_id, OutputRange range, std::string_view text,
                  std::size_t cut = 0, std::vector<ChatImage> images = {});
  /// What a call has written is not shown any more, as it begins anew. Updates of it remain.
  void forget_output(std::string_view call_id);
  /// Answers the calls that have no result yet with placeholders.
  void detach_open_calls();

  /// Whether every call has its answer, so that the model can be called and texts can be added.
  [[nodiscard]] bool is_answered() const { return open_ == 0; }
  /// Whether the call was answered with a placeholder, and has not ended since.
  [[nodiscard]] bool is_detached(std::string_view call_id) const;
  /// The calls that have no result yet, also those with a placeholder.
  [[nodiscard]] std::vector<std::string> unanswered() const;
  /// All of it but the instructions and images, to be kept.
  [[nodiscard]] json::object state() const;
  /// Goes on with what was kept. Call only on a new history, which is of no use after an error
  /// (-32602): the state is broken.
  Result<void> restore(const json::object& state);
  /// How many messages have come since the last answer, if that and all before it are still what
  /// the model was shown when it gave it; otherwise 0.
  [[nodiscard]] std::size_t new_messages() const {
    return settled_ == 0 ? 0 : messages_.size() - settled_;
  }
  /// The messages, for a request to the model; valid until something is added.
  [[nodiscard]] const std::vector<ChatMessage>& messages() const { return messages_; }

 private:
  enum class Kind : std::uint8_t { system, input, answer, result, update };
  enum class State : std::uint8_t { open, held, placeholder, ended };
  struct Call {
    std::string tool;
    State state = State::open;
    std::size_t message = 0;   // the index of its result in messages_; set from placeholder on
    std::string output = {};   // what is written, while it is open or rewritten; at its end
    std::size_t left_out = 0;  // bytes before that
    std::vector<ChatImage> images = {};  // the same
    OutputRange range = {};
    bool has_output = false;
  };

  /// Puts what the user says behind the last message, as a part of it.
  void join_input(std::string_view text);
  /// Adds the messages of the role "tool" once each call of the round has an answer or a
  /// placeholder.
  void commit();
  /// Whether nothing but results has come since the placeholder of `call`.
  [[nodiscard]] bool is_at_tail(const Call& call) const;
  void add_update(const std::string& call_id, const Call& call, OutputRange range, bool is_final,
                  std::string_view text, std::vector<ChatImage> images);
  Result<void> check_restored();
  /// Makes one message of those that do not alternate.
  void join_messages();
  void push(Kind kind, std::string role, std::string text);
  void render(std::size_t message);
  /// Leaves the images that are too many to their text.
  void drop_images();
  /// To be called before a message is changed.
  ChatMessage& changed(std::size_t message);

  RunHistoryOptions options_;
  std::vector<ChatMessage> messages_;
  std::vector<Kind> kinds_;  // of the messages
  std::map<std::string, Call, std::less<>> calls_;
  std::vector<std::string> round_;  // the calls of the last answer, in their order
  std::size_t open_ = 0;            // calls of the round without an answer
  /// The messages up to the last answer, none of which has changed since; 0: one has.
  std::size_t settled_ = 0;
};

/// `text` as data for a model: valid UTF-8 without controls but tabs and line feeds. The bracket of
/// what looks like a mark, in whatever case and with whatever between its Latin letters, is
/// another.
std::string as_tool_data(std::string_view text);

}  // namespace sluice

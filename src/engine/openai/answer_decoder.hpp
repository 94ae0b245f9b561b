#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "engine/engine.hpp"
#include "engine/openai/answer_repairs.hpp"
#include "engine/openai/call_collector.hpp"
#include "json/json.hpp"
#include "sluice/model.hpp"

namespace sluice {

/// What a decoder knows of the request.
struct AnswerOptions {
  std::string made_id = "call_";  // before the number of a call whose server gives it no id
  bool has_call_parts = false;    // whether arguments of calls are delivered as they come, too
  /// The limit of the request, for a server that does not say that an answer has reached it.
  std::optional<int> max_tokens = {};
  std::string server = {};  // names the server, among those whose answers one conversation has
};

/// Decodes the stream of an answer, which is fed with the names and the data of its events.
/// Whatever the API is, the same answer gives the same deltas and the same completion. Bounded as
/// CallCollector is; everything else is passed on at once.
class AnswerDecoder {
 public:
  virtual ~AnswerDecoder() = default;
  AnswerDecoder(const AnswerDecoder&) = delete;
  AnswerDecoder& operator=(const AnswerDecoder&) = delete;

  /// Takes one event, and adds what it says to `out`. `name` is that of the event in the stream, if
  /// it has one. Events of unknown kinds and those after the end are ignored. The error is the
  /// server's own one, or says what cannot be read; nothing more may be fed then.
  Result<void> take(std::string_view name, std::string_view data, std::vector<Delta>& out);
  /// Whether the server has said that nothing follows.
  [[nodiscard]] bool is_done() const { return is_done_; }
  /// The stream has ended or broken off. Adds the calls of tools, which are whole only now. Timings
  /// are left to the caller. The error says why this is no answer.
  Result<Completion> end(std::vector<Delta>& out);

  [[nodiscard]] AnswerRepairs repairs() const;
  /// The id of the answer that another request can go on from; empty if there is none.
  [[nodiscard]] virtual std::string_view response_id() const { return {}; }
  /// What the server has told so far of what the answer uses.
  [[nodiscard]] const Usage& told_usage() const { return usage_; }
  /// Whether the stream has said anything of an answer.
  [[nodiscard]] bool has_begun() const { return has_begun_; }

 protected:
  explicit AnswerDecoder(AnswerOptions options);

  /// Takes an event that is an object without an error.
  virtual Result<void> take_object(std::string_view name, const json::object& event,
                                   std::vector<Delta>& out) = 0;
  /// What the server demands back with the calls of the answer; see ServerData.
  [[nodiscard]] virtual std::string server_data() const { return {}; }
  /// Why the answer ends; nothing if the server has not said so.
  virtual Result<std::optional<Completion::Reason>> reason() = 0;

  /// Adds a text, unless it is empty.
  void say(Delta::Kind kind, std::string_view text, std::vector<Delta>& out);
  void finish() { is_done_ = true; }
  void begin_answer() { has_begun_ = true; }
  void repair(Repair what) { repairs_.add(what); }
  CallCollector& calls() { return calls_; }
  [[nodiscard]] const CallCollector& calls() const { return calls_; }
  Usage& usage() { return usage_; }
  [[nodiscard]] const AnswerOptions& options() const { return options_; }

 private:
  AnswerOptions options_;
  CallCollector calls_;
  Usage usage_;
  AnswerRepairs repairs_;
  bool has_begun_ = false;
  bool is_done_ = false;
};

/// The decoder of an API's answers.
std::unique_ptr<AnswerDecoder> make_decoder(ModelApi api, AnswerOptions options);

/// The member `name` if it is an integer, also one that is written as 1.0.
std::optional<std::int64_t> integer_at(const json::object& object, std::string_view name);
/// A count of tokens; 0 if it is missing or no count.
std::uint32_t token_count_at(const json::object& object, std::string_view name);

/// The arguments of a call: text, or an object, which Ollama and others send whole.
std::string arguments_at(const json::object& call, std::string_view name = "arguments");

}  // namespace sluice

#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "engine/engine.hpp"
#include "engine/openai/dialect.hpp"
#include "json/json.hpp"

namespace sluice {

/// Gives ids to the calls and the results of a conversation that have none: calls are numbered, and
/// results answer the open calls in their order.
class CallIds {
 public:
  std::string of_call(const ChatToolCall& call);
  std::string of_result(const ChatMessage& message);
  /// A message that is no result: earlier calls are not answered any more.
  void forget() { open_.clear(); }

 private:
  std::size_t count_ = 0;
  std::deque<std::string> open_;
};

/// The parts of a message, as one of these APIs has them.
struct PartForms {
  json::object (*text)(std::string_view text);
  json::object (*image)(const std::string& url);
};

/// The images of results, for which a result has no place in these APIs: a message of the user
/// behind the results has them.
class ResultImages {
 public:
  explicit ResultImages(PartForms forms) : forms_(forms) {}
  /// `call_id` says which call `result` answers.
  void add(std::string_view call_id, const ChatMessage& result);
  [[nodiscard]] bool is_empty() const { return parts_.empty(); }
  /// The content of a message with what was added, if anything was, and then `message`.
  json::value before(const ChatMessage& message);
  /// The content of a message with what was added.
  json::array take() { return std::exchange(parts_, {}); }

 private:
  void append(const std::vector<ChatImage>& images);

  PartForms forms_;
  json::array parts_;
};

/// The functions that a request's `tools` define: {"name", "description", "parameters"}. Tools are
/// defined as in MCP, or as these APIs do. Errors: -32602 for what is no array of objects.
Result<std::vector<json::object>> functions_of(const std::string& tools);

/// Adds the sampling parameters that do not have their default value. Error: -32602 for those that
/// the dialect does not have.
Result<void> add_sampling(const SamplingParams& sampling, const Dialect& dialect,
                          json::object& body);

/// The schema of the answer, which a request has. Error: -32602 if it is no JSON.
Result<json::value> answer_schema(const std::string& json_schema);

/// Adds a request's grammar. Error: -32602 if the dialect has none.
Result<void> add_grammar(const std::string& grammar, const Dialect& dialect, json::object& body);

}  // namespace sluice

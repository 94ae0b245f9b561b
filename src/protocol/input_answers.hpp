#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/sharing/client_memory.hpp"
#include "json/json.hpp"
#include "protocol/input_rounds.hpp"

namespace sluice {

/// Checks whether `answer` is a valid result for `request`. Its shape must be that of the request's
/// method (2026-07-28, Elicitation, Sampling, Roots), and the content of an accepted elicitation
/// must follow the requested schema, including formats. For unknown methods any object is valid. No
/// answer may have more than kMaxAnswerValues values.
///
/// Errors: -32602 says where the answer is wrong; -32603 if the requested schema is not a valid
/// schema.
Result<void> check_answer(const InputRequest& request, const json::value& answer);

/// Requests to the client that are sent together, and the answers received so far. Whichever way an
/// answer arrives, it is checked with check_answer() here and bound to its request.
class AskedInputs {
 public:
  /// `memory` is charged for long answers.
  explicit AskedInputs(std::vector<InputRequest> requests, MemoryHold memory = MemoryHold())
      : requests_(std::move(requests)),
        answers_(requests_.size()),
        missing_(requests_.size()),
        memory_(std::move(memory)) {}

  [[nodiscard]] const std::vector<InputRequest>& requests() const { return requests_; }
  [[nodiscard]] bool answered(std::size_t index) const { return answers_[index].has_value(); }
  /// The requests that have no answer yet.
  [[nodiscard]] std::vector<const InputRequest*> missing() const;
  /// What take() would return if there is memory, without taking the answer.
  [[nodiscard]] Result<void> check(std::size_t index, const json::value& answer) const;
  /// Whether every request has an answer.
  [[nodiscard]] bool complete() const { return missing_ == 0; }

  /// Copies the answer to the request at `index`; later answers to it are ignored. If
  /// check_answer() refuses the answer, or if there is no memory for it (kLimitReached), returns
  /// the Error and leaves the request unanswered.
  Result<void> take(std::size_t index, const json::value& answer);
  /// Moves out all answers, in the order of their requests. Call it once, when complete().
  std::vector<json::value> release();

 private:
  std::vector<InputRequest> requests_;
  std::vector<std::optional<json::value>> answers_;
  std::size_t missing_;
  MemoryHold memory_;
};

}  // namespace sluice

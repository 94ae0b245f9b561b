#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "json/json.hpp"
#include "protocol/input_rounds.hpp"

namespace sluice {

/// Whether `answer` is a result that `request` may have: of the shape of its method (2026-07-28,
/// Elicitation, Sampling, Roots), and what an elicitation accepts follows the schema that was
/// requested, formats included. Methods that are not known may have any object.
///
/// The Error (-32602) says where the answer is wrong; it is -32603 if the requested schema is none.
Result<void> check_answer(const InputRequest& request, const json::value& answer);

/// Requests to the client that are asked together, and what it has answered so far. Whatever way
/// the answers take, each passes check_answer() here and is bound to its request.
class AskedInputs {
 public:
  explicit AskedInputs(std::vector<InputRequest> requests)
      : requests_(std::move(requests)), answers_(requests_.size()), missing_(requests_.size()) {}

  [[nodiscard]] const std::vector<InputRequest>& requests() const { return requests_; }
  [[nodiscard]] bool answered(std::size_t index) const { return answers_[index].has_value(); }
  /// Those that have no answer.
  [[nodiscard]] std::vector<const InputRequest*> missing() const;
  /// Whether there is an answer to each.
  [[nodiscard]] bool complete() const { return missing_ == 0; }

  /// Copies the answer to the request at `index`; the first one counts. An Error, as of
  /// check_answer(), leaves the request without an answer.
  Result<void> take(std::size_t index, const json::value& answer);
  /// All answers in the order of their requests. Once, when it is complete.
  std::vector<json::value> release();

 private:
  std::vector<InputRequest> requests_;
  std::vector<std::optional<json::value>> answers_;
  std::size_t missing_;
};

}  // namespace sluice

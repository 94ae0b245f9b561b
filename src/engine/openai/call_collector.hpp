#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "engine/engine.hpp"
#include "engine/openai/answer_repairs.hpp"

namespace sluice {

/// Puts the calls of tools in an answer together from their pieces, which may be interleaved. Calls
/// have positions from 0, in the order in which they begin. Bounded: kMaxCalls calls, which take at
/// most kMaxBytes together; more is an error with kLimitReached.
class CallCollector {
 public:
  /// A call without an id of its own gets `made_id` and a number. `has_parts`: arguments are
  /// delivered as they come, too.
  CallCollector(std::string made_id, bool has_parts)
      : made_id_(std::move(made_id)), has_parts_(has_parts) {}

  /// Begins a call, whose id and name may come later; returns its position.
  Result<std::size_t> begin();
  /// Takes the id and the name unless they are empty or known already.
  Result<void> describe(std::size_t call, std::string_view id, std::string_view name);
  /// Adds a piece of the arguments' text.
  Result<void> append(std::size_t call, std::string_view arguments, std::vector<Delta>& out);
  /// Takes the whole text of the arguments in place of the pieces, unless it is empty. Pieces that
  /// follow are ignored.
  Result<void> settle(std::size_t call, std::string_view arguments);
  /// The answer is over: adds the calls. `is_cut`: because it became too long. Error: why a call
  /// cannot be made.
  Result<void> end(bool is_cut, std::vector<Delta>& out);

  [[nodiscard]] std::size_t size() const { return calls_.size(); }
  [[nodiscard]] const std::string& id(std::size_t call) const { return calls_[call].id; }
  [[nodiscard]] const std::string& name(std::size_t call) const { return calls_[call].name; }
  /// The text of the arguments so far.
  [[nodiscard]] const std::string& arguments(std::size_t call) const {
    return calls_[call].arguments;
  }
  /// Whether settle() was called.
  [[nodiscard]] bool is_settled(std::size_t call) const { return calls_[call].is_settled; }
  /// Whether the pieces so far are a whole object, or settle() was called.
  [[nodiscard]] bool is_whole(std::size_t call) const;
  /// Calls whose ids were made up.
  [[nodiscard]] const AnswerRepairs& repairs() const { return repairs_; }

  static constexpr std::size_t kMaxBytes = std::size_t{4} << 20U;
  static constexpr std::size_t kMaxCalls = 128;

 private:
  /// How far a text is through a JSON object, without looking at the rest of its syntax.
  class Extent {
   public:
    void take(std::string_view text);
    [[nodiscard]] bool is_whole() const { return has_begun_ && depth_ == 0; }

   private:
    std::size_t depth_ = 0;
    bool has_begun_ = false;
    bool is_in_string_ = false;
    bool is_escaped_ = false;
  };
  struct Collected {
    std::string id;
    std::string name;
    std::string arguments;      // so far
    std::size_t delivered = 0;  // bytes of them, as parts
    Extent extent;
    bool is_settled = false;
    std::shared_ptr<const CallHead> head;  // null until a delta needs it
  };

  Result<void> hold(std::size_t bytes);
  const std::shared_ptr<const CallHead>& head_of(Collected& call);

  std::string made_id_;
  bool has_parts_;
  std::vector<Collected> calls_;
  std::size_t bytes_ = 0;
  std::size_t made_ = 0;
  AnswerRepairs repairs_;
};

}  // namespace sluice

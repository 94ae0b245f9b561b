#include "engine/answer/reasoning_splitter.hpp"

#include <algorithm>
#include <utility>

namespace sluice {
namespace {

constexpr std::string_view kWhiteSpace = " \t\r\n";
/// How much white space may precede the start mark, in bytes.
constexpr std::size_t kMaxLeadingSpace = 64;

}  // namespace

ReasoningSplitter::ReasoningSplitter(ReasoningMarks marks, bool open)
    : start_(std::move(marks.start)), ends_(std::move(marks.ends)) {
  if (open) {
    begin(State::reasoning);
  } else if (start_.empty()) {
    state_ = State::answer;
  }
}

void ReasoningSplitter::push(std::string_view piece, std::vector<Delta>& out) {
  switch (state_) {
    case State::start: {
      held_ += piece;
      const std::size_t space = std::min(held_.find_first_not_of(kWhiteSpace), held_.size());
      const std::string_view word = std::string_view(held_).substr(space);
      if (word.size() >= start_.size() && word.starts_with(start_)) {
        const std::string rest(word.substr(start_.size()));
        held_.clear();
        begin(State::reasoning);
        push(rest, out);
      } else if (!start_.starts_with(word) || space > kMaxLeadingSpace) {
        state_ = State::answer;
        emit(std::exchange(held_, {}), out);
      }
      return;
    }
    case State::reasoning: {
      const auto result = ends_.push(piece);
      emit(result.text, out);
      if (result.found) {
        begin(State::answer);
        emit(result.rest, out);
      }
      return;
    }
    case State::answer:
      emit(piece, out);
      return;
  }
}

void ReasoningSplitter::finish(std::vector<Delta>& out) {
  if (state_ == State::reasoning) {
    emit(ends_.finish(), out);
  } else if (state_ == State::start) {
    state_ = State::answer;
    emit(std::exchange(held_, {}), out);
  }
}

void ReasoningSplitter::begin(State state) {
  state_ = state;
  skip_space_ = true;
}

void ReasoningSplitter::emit(std::string_view text, std::vector<Delta>& out) {
  if (skip_space_) {
    text.remove_prefix(std::min(text.find_first_not_of(kWhiteSpace), text.size()));
  }
  if (text.empty()) return;
  skip_space_ = false;
  out.push_back({.kind = state_ == State::reasoning ? Delta::Kind::reasoning : Delta::Kind::text,
                 .text = std::string(text)});
}

}  // namespace sluice

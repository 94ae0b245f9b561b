#include "engine/answer/answer_reader.hpp"

#include <utility>

#include "core/crypto/random.hpp"

namespace sluice {
namespace {

/// A parser starts from the beginning each time. It runs again only when the text has grown by this
/// fraction of its length, so that the total work stays proportional to the text.
constexpr std::size_t kReparseFraction = 512;
/// The same once there are calls, which come at the end: hardly anything can be passed on before.
constexpr std::size_t kReparseFractionInCalls = 8;

constexpr std::size_t kCallIdBytes = 12;

/// The part of `now` after `before`; empty if `now` does not begin with `before`.
std::string_view grown(const std::string& before, const std::string& now) {
  if (!now.starts_with(before)) return {};
  return std::string_view(now).substr(before.size());
}

}  // namespace

AnswerReader::AnswerReader(Options options)
    : raw_stops_(std::move(options.raw_stops)),
      splitter_(std::move(options.marks), options.reasoning_open),
      stops_(std::move(options.stops)),
      parser_(std::move(options.parser)) {}

bool AnswerReader::push(std::string_view bytes, std::vector<Delta>& out) {
  auto passed = raw_stops_.push(assembler_.push(bytes));
  read(passed.text, out);
  stopped_ = stopped_ || passed.found;
  return stopped_;
}

bool AnswerReader::is_in_text() {
  if (parser_ == nullptr) return splitter_.is_in_text();
  const auto answer = parser_->parse(raw_, false);
  return answer && !answer->begins_call && !answer->text.empty();
}

AnswerReader::Ending AnswerReader::finish(bool whole, std::vector<Delta>& out) {
  if (!stopped_) {
    auto passed = raw_stops_.push(assembler_.finish());
    read(passed.text, out);
    if (!passed.found) read(raw_stops_.finish(), out);
  }
  if (parser_ != nullptr) {
    auto answer = parser_->parse(raw_, whole);
    if (!answer && whole) answer = parser_->parse(raw_, false);
    if (answer && !stopped_) emit_parsed(*answer, out);
    if (std::string rest = stops_.finish(); !stopped_ && !rest.empty()) {
      out.push_back({.kind = Delta::Kind::text, .text = std::move(rest)});
    }
    if (!answer) return Ending::text;
    if (!whole) return answer->begins_call ? Ending::cut_call : Ending::text;
    for (ParsedCall& call : answer->tool_calls) {
      CallHead head{.id = "call_" + random_id(kCallIdBytes), .name = std::move(call.name)};
      out.push_back({.kind = Delta::Kind::tool_call,
                     .text = std::move(call.json),
                     .call = std::make_shared<const CallHead>(std::move(head))});
    }
    return answer->tool_calls.empty() ? Ending::text : Ending::calls;
  }
  if (stopped_) return Ending::text;
  splitter_.finish(scratch_);
  emit(scratch_, out);
  if (std::string rest = stops_.finish(); !stopped_ && !rest.empty()) {
    out.push_back({.kind = Delta::Kind::text, .text = std::move(rest)});
  }
  return Ending::text;
}

void AnswerReader::read(std::string_view text, std::vector<Delta>& out) {
  if (text.empty() || stopped_) return;
  if (parser_ == nullptr) {
    splitter_.push(text, scratch_);
    emit(scratch_, out);
    return;
  }
  raw_ += text;
  const std::size_t fraction = in_calls_ ? kReparseFractionInCalls : kReparseFraction;
  if (raw_.size() - parsed_ <= raw_.size() / fraction) return;
  parsed_ = raw_.size();
  const auto answer = parser_->parse(raw_, false);
  if (!answer) return;
  in_calls_ = in_calls_ || answer->has_calls;
  emit_parsed(*answer, out);
}

/// Passes on the deltas up to the first stop string in the text.
void AnswerReader::emit(std::vector<Delta>& from, std::vector<Delta>& out) {
  for (Delta& delta : from) {
    if (delta.kind == Delta::Kind::text) {
      auto passed = stops_.push(delta.text);
      delta.text = std::move(passed.text);
      stopped_ = passed.found;
    }
    if (!delta.text.empty()) out.push_back(std::move(delta));
    if (stopped_) break;
  }
  from.clear();
}

void AnswerReader::emit_parsed(const ParsedAnswer& answer, std::vector<Delta>& out) {
  if (const auto more = grown(seen_.reasoning, answer.reasoning); !more.empty()) {
    scratch_.push_back({.kind = Delta::Kind::reasoning, .text = std::string(more)});
    seen_.reasoning = answer.reasoning;
  }
  if (const auto more = grown(seen_.text, answer.text); !more.empty()) {
    scratch_.push_back({.kind = Delta::Kind::text, .text = std::string(more)});
    seen_.text = answer.text;
  }
  emit(scratch_, out);
}

}  // namespace sluice

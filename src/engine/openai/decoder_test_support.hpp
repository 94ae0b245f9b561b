#pragma once

#include <cstddef>
#include <gtest/gtest.h>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "engine/openai/answer_decoder.hpp"
#include "net/http/sse.hpp"

namespace sluice {

/// A stream with these events.
inline std::string events_of(std::initializer_list<std::string_view> all) {
  std::string stream;
  for (const std::string_view each : all) stream.append("data: ").append(each).append("\n\n");
  return stream;
}

/// An answer as a line: its text, reasoning, calls (with `has_ids`, behind their ids), parts of
/// calls, and how it ended, with the tokens of its usage.
inline std::string shown(const std::vector<Delta>& deltas, const Result<Completion>& end,
                         bool has_ids = false) {
  std::string text;
  std::string reasoning;
  std::string calls;
  std::string parts;
  for (const Delta& delta : deltas) {
    switch (delta.kind) {
      case Delta::Kind::text:
        text.append(delta.text);
        break;
      case Delta::Kind::reasoning:
        reasoning.append(delta.text);
        break;
      case Delta::Kind::tool_call:
        if (has_ids) calls.append(delta.call->id).append("=");
        calls.append(delta.text);
        break;
      case Delta::Kind::tool_call_part:
        parts.append("[").append(delta.call->id).append(" ").append(delta.call->name);
        parts.append(" ").append(delta.text).append("]");
        break;
      case Delta::Kind::members:
        break;  // servers of models have none
    }
  }
  std::string ending;
  if (end) {
    ending.append(to_string(end->reason)).append(" ");
    ending.append(std::to_string(end->usage.prompt_tokens)).append("/");
    ending.append(std::to_string(end->usage.cached_tokens)).append("/");
    ending.append(std::to_string(end->usage.completion_tokens));
    if (end->usage.reasoning_tokens != 0) {
      ending.append("/").append(std::to_string(end->usage.reasoning_tokens));
    }
  } else {
    ending = "error: " + end.error().message;
  }
  return text + "|" + reasoning + "|" + calls + "|" + parts + (parts.empty() ? "" : "|") + ending;
}

/// What comes of a stream that arrives in two pieces.
template <class Decoder>
std::string read_cut(std::string_view stream, std::size_t cut, const AnswerOptions& options,
                     AnswerRepairs& repairs) {
  SseDecoder events;
  Decoder decoder(options);
  std::vector<Delta> deltas;
  Result<void> taken;
  for (const std::string_view piece : {stream.substr(0, cut), stream.substr(cut)}) {
    const Result<void> fed = events.feed(piece, [&](const SseEvent& event) {
      if (taken) taken = decoder.take(event.type, event.data, deltas);
    });
    EXPECT_TRUE(fed);
  }
  repairs = decoder.repairs();
  if (!taken) return "error: " + taken.error().message;
  const Result<Completion> end = decoder.end(deltas);
  repairs = decoder.repairs();
  return shown(deltas, end, options.has_call_parts);
}

/// The same for each place where the stream can be cut, which must make no difference.
template <class Decoder>
std::string read_answer(const std::string& stream, const AnswerOptions& options,
                        AnswerRepairs& repairs) {
  const std::string whole = read_cut<Decoder>(stream, 0, options, repairs);
  const AnswerRepairs expected = repairs;
  for (std::size_t cut = 1; cut <= stream.size(); ++cut) {
    EXPECT_EQ(read_cut<Decoder>(stream, cut, options, repairs), whole) << "cut at " << cut;
    EXPECT_EQ(repairs, expected) << "cut at " << cut;
  }
  return whole;
}

}  // namespace sluice

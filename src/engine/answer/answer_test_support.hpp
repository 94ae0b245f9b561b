#pragma once

#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "engine/answer/answer_reader.hpp"

namespace sluice::test {

/// What an AnswerReader returned for an answer.
struct ReadAnswer {
  std::string text;
  std::string reasoning;
  std::vector<std::string> calls;
  std::vector<CallHead> heads;  // of the calls
  bool stopped = false;
  AnswerReader::Ending ending = AnswerReader::Ending::text;
};

/// Reads an answer that arrives in `pieces`. `whole` says whether the model ended it by itself.
inline ReadAnswer read_answer(AnswerReader::Options options, const std::vector<std::string>& pieces,
                              bool whole = true) {
  AnswerReader reader(std::move(options));
  std::vector<Delta> out;
  ReadAnswer result;
  for (const std::string& piece : pieces) {
    result.stopped = reader.push(piece, out);
    if (result.stopped) break;
  }
  result.ending = reader.finish(whole, out);
  for (const Delta& delta : out) {
    EXPECT_FALSE(delta.text.empty());
    if (delta.kind == Delta::Kind::text) result.text += delta.text;
    if (delta.kind == Delta::Kind::reasoning) result.reasoning += delta.text;
    if (delta.kind != Delta::Kind::tool_call) continue;
    result.calls.push_back(delta.text);
    if (delta.call != nullptr) result.heads.push_back(*delta.call);
  }
  return result;
}

}  // namespace sluice::test

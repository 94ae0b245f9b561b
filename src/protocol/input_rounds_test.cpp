#include "protocol/input_rounds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <string>

#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kRequest = R"("name":"ask","arguments":{"a":1,"b":[2,{"c":3,"d":4}]})";

std::string list_of(std::size_t values) {
  std::string list = R"({"z":[)";
  for (std::size_t i = 0; i < values; ++i) list.append("0,");
  list.back() = ']';
  return list + "}";
}

class InputRoundsTest : public ::testing::Test {
 protected:
  /// Reads a request of `principal` with these params (JSON members).
  Result<InputRounds> read(const std::string& members, const std::string& principal = "alice",
                           std::string_view method = "tools/call") {
    const std::string text = R"({"jsonrpc":"2.0","id":1,"method":")" + std::string(method) +
                             R"(","params":{)" + members + "}}";
    const auto message = parser.parse(text);
    if (!message) {
      ADD_FAILURE() << message.error().error.message << text;
      return fail(0, "");
    }
    return InputRounds::read(*message, principal, sealer, now);
  }
  static InputRequest question(const std::string& key, const std::string& message = "?") {
    return {key, "elicitation/create", {{"message", message}}};
  }
  /// The state after a round that asks for `key`.
  std::string state_after(const InputRounds& rounds, const std::string& key) {
    const InputRequest request = question(key);
    const auto result = parse_json("{" + rounds.ask({&request}, sealer, now).value() + "}");
    EXPECT_TRUE(result);
    EXPECT_TRUE(result->at("inputRequests").as_object().contains(key));
    return R"("requestState":)" + to_json(result->at("requestState"));
  }

  /// Rounds in which `answer` has answered the question `key`.
  InputRounds answered(const std::string& key, const std::string& answer) {
    const InputRounds first = read(kRequest).value();
    return read(std::string(kRequest) + R"(,"inputResponses":{")" + key + R"(":)" + answer + "}," +
                state_after(first, key))
        .value();
  }

  MessageParser parser;
  Sealer sealer;
  InputRounds::Time now{1'800'000'000s};
};

TEST_F(InputRoundsTest, AnswersOfEarlierRoundsTravelWithTheClient) {
  auto first = read(kRequest);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->find(question("name")), nullptr);
  const std::string name = R"(,"inputResponses":{"name":{"action":"accept"},"more":{}})";
  auto second = read(kRequest + name + "," + state_after(*first, "name"));
  ASSERT_TRUE(second);
  EXPECT_EQ(to_json(*second->find(question("name"))), R"({"action":"accept"})");
  auto third = read(std::string(kRequest) + R"(,"inputResponses":{"age":{"n":7}},)" +
                    state_after(*second, "age"));
  ASSERT_TRUE(third);
  EXPECT_EQ(to_json(*third->find(question("name"))), R"({"action":"accept"})");
  EXPECT_EQ(to_json(*third->find(question("age"))), R"({"n":7})");
}

TEST_F(InputRoundsTest, TheStateIsOfOneRequestOfOnePrincipal) {
  auto first = read(kRequest);
  ASSERT_TRUE(first);
  const std::string state = "," + state_after(*first, "name");
  EXPECT_TRUE(read(kRequest + state));
  EXPECT_TRUE(
      read(R"("_meta":{"x":1},"arguments":{"b":[2,{"d":4,"c":3}],"a":1},"name":"ask")" + state))
      << "the same request with its members in another order";
  EXPECT_FALSE(read(R"("name":"ask","arguments":{"a":1,"b":[2,{"c":3,"d":5}]})" + state));
  EXPECT_FALSE(read(R"("name":"other","arguments":{"a":1,"b":[2,{"c":3,"d":4}]})" + state));
  EXPECT_FALSE(read(kRequest + state, "mallory"));
  EXPECT_FALSE(read(kRequest + state, "alice", "prompts/get"));
  std::string tampered = state;
  tampered[tampered.size() / 2] = tampered[tampered.size() / 2] == 'A' ? 'B' : 'A';
  auto refused = read(kRequest + tampered);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, kInvalidParams);
  EXPECT_THAT(refused.error().message, HasSubstr("begin again"));
}

TEST_F(InputRoundsTest, AnAnswerIsThatToItsQuestionAlone) {
  auto first = read(kRequest);
  ASSERT_TRUE(first);
  const std::string answer = R"(,"inputResponses":{"sure":{"action":"accept"}})";
  auto unasked = read(kRequest + answer);
  ASSERT_TRUE(unasked);
  EXPECT_EQ(unasked->find(question("sure")), nullptr);
  auto asked = read(kRequest + answer + "," + state_after(*first, "other"));
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->find(question("sure")), nullptr);
  auto second = read(kRequest + answer + "," + state_after(*first, "sure"));
  ASSERT_TRUE(second);
  EXPECT_NE(second->find(question("sure")), nullptr);
  EXPECT_EQ(second->find(question("sure", "Delete 3000?")), nullptr);
  // Nor in later rounds.
  auto third = read(std::string(kRequest) + "," + state_after(*second, "more"));
  ASSERT_TRUE(third);
  EXPECT_NE(third->find(question("sure")), nullptr);
  EXPECT_EQ(third->find(question("sure", "Delete 3000?")), nullptr);
  EXPECT_EQ(third->key(), first->key());
  EXPECT_NE(unasked->key(), first->key());
}

TEST_F(InputRoundsTest, RoundsThatGetNoFurtherHaveAnEnd) {
  auto rounds = read(kRequest);
  ASSERT_TRUE(rounds);
  const auto again = [&](const std::string& key) {
    ASSERT_FALSE(rounds->is_stuck());
    rounds = read(std::string(kRequest) + "," + state_after(*rounds, key) +
                  R"(,"inputResponses":{")" + key + R"(":{}})");
    ASSERT_TRUE(rounds);
  };
  for (int i = 1; i < InputRounds::kMaxFruitless; ++i) again("name");
  again("name");
  EXPECT_TRUE(rounds->is_stuck());
  // An answer to a question that is asked again.
  EXPECT_NE(rounds->find(question("name")), nullptr);
  EXPECT_FALSE(rounds->is_stuck());
  for (int i = 0; i < InputRounds::kMaxFruitless; ++i) {
    again("age");
    EXPECT_NE(rounds->find(question("name")), nullptr);
  }
  EXPECT_TRUE(rounds->is_stuck());
}

TEST_F(InputRoundsTest, TheStateExpires) {
  auto first = read(kRequest);
  ASSERT_TRUE(first);
  const std::string state = "," + state_after(*first, "name");
  now += InputRounds::kLifetime;
  EXPECT_TRUE(read(kRequest + state));
  now += 1s;
  EXPECT_FALSE(read(kRequest + state));
}

TEST_F(InputRoundsTest, TheStateHidesTheAnswers) {
  auto first = read({});
  ASSERT_TRUE(first);
  auto rounds =
      read(R"("inputResponses":{"name":{"secret":"Ada Lovelace"}},)" + state_after(*first, "name"));
  ASSERT_TRUE(rounds);
  ASSERT_NE(rounds->find(question("name")), nullptr);
  EXPECT_THAT(state_after(*rounds, "more"), Not(HasSubstr("Ada Lovelace")));
}

TEST_F(InputRoundsTest, NoMoreTravelsThanALoopCanHandleAtOnce) {
  const InputRequest next = question("more");
  const auto refused = [&](const std::string& answer) {
    InputRounds rounds = answered("name", answer);
    // The handler gets the last answer, whatever its length is.
    EXPECT_NE(rounds.find(question("name")), nullptr);
    const Result<std::string> asked = rounds.ask({&next}, sealer, now);
    return !asked && asked.error().code == kLimitReached;
  };
  const auto text = [](std::size_t bytes, char c) {
    return R"({"t":")" + std::string(bytes, c) + "\"}";
  };
  EXPECT_FALSE(refused(text(InputRounds::kMaxState / 4 * 3 - 1000, 'x')));
  EXPECT_TRUE(refused(text(InputRounds::kMaxState / 4 * 3, 'x')));
  EXPECT_TRUE(refused(text(std::size_t{4} << 20U, 'x')));
  EXPECT_FALSE(refused(list_of(InputRounds::kMaxStateValues - 100)));
  EXPECT_TRUE(refused(list_of(InputRounds::kMaxStateValues - 3)));
}

TEST_F(InputRoundsTest, ALongerStateIsNotOpened) {
  EXPECT_FALSE(read(std::string(kRequest) + R"(,"requestState":")" +
                    std::string(InputRounds::kMaxState + 4, 'A') + "\""));
}

TEST_F(InputRoundsTest, TheValuesOfTheStateAreCounted) {
  EXPECT_EQ(read(kRequest)->values(), 0U);
  const InputRounds rounds = answered("name", list_of(1000));
  const Result<InputRounds> next = read(std::string(kRequest) + "," + state_after(rounds, "more"));
  ASSERT_TRUE(next);
  EXPECT_GT(next->values(), 1000U);
  EXPECT_LT(next->values(), 1050U);
}

TEST_F(InputRoundsTest, AnAnswerOfTooManyValuesIsRefused) {
  const InputRounds first = read(kRequest).value();
  const Result<InputRounds> rounds =
      read(std::string(kRequest) + R"(,"inputResponses":{"name":)" + list_of(kMaxAnswerValues) +
           "}," + state_after(first, "name"));
  ASSERT_FALSE(rounds);
  EXPECT_EQ(rounds.error().code, kInvalidParams);
  EXPECT_THAT(rounds.error().message, HasSubstr("inputResponses[\"name\"] has more than 16384"));
}

TEST_F(InputRoundsTest, WhatIsIllTypedIsNamed) {
  for (const auto& [members, why] :
       {std::pair(R"("requestState":7)", "requestState must be a string"),
        std::pair(R"("inputResponses":[])", "inputResponses must be an object")}) {
    const auto rounds = read(members);
    ASSERT_FALSE(rounds) << members;
    EXPECT_EQ(rounds.error().code, kInvalidParams);
    EXPECT_THAT(rounds.error().message, HasSubstr(why));
  }
  const std::string state = "," + state_after(*read(kRequest), "a");
  auto rounds = read(kRequest + std::string(R"(,"inputResponses":{"a":1})") + state);
  ASSERT_FALSE(rounds);
  EXPECT_EQ(rounds.error().code, kInvalidParams);
  EXPECT_THAT(rounds.error().message, HasSubstr(R"(inputResponses["a"] must be an object)"));
}

TEST_F(InputRoundsTest, WhatWasNotAskedIsIgnoredWhateverItIs) {
  const std::string state = "," + state_after(*read(kRequest), "a");
  auto rounds =
      read(kRequest + std::string(R"(,"inputResponses":{"b":1,"c":null,"a":{"n":1}})") + state);
  ASSERT_TRUE(rounds);
  EXPECT_NE(rounds->find(question("a")), nullptr);
  EXPECT_EQ(rounds->find(question("b")), nullptr);
  EXPECT_TRUE(read(R"("inputResponses":{"a":1})"));
}

}  // namespace
}  // namespace sluice

#include "cli/questions/terminal_answers.hpp"

#include <deque>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// A user who types these lines, and then ends the input.
struct Typist {
  std::deque<std::string> lines;
  std::string seen = {};

  std::string answer(std::string_view params) {
    return to_json(ask_user(parse_json(params).value().get_object(),
                            {.show = [this](std::string_view text) { seen.append(text); },
                             .read_line = [this]() -> std::optional<std::string> {
                               if (lines.empty()) return std::nullopt;
                               std::string line = lines.front();
                               lines.pop_front();
                               return line;
                             }}));
  }
};

constexpr std::string_view kForm = R"({"message":"Who?","requestedSchema":{"properties":{
  "name":{"type":"string","title":"Your name","minLength":2},
  "age":{"type":"integer","minimum":0},
  "member":{"type":"boolean","default":false},
  "size":{"type":"string","enum":["s","m"],"enumNames":["Small","Medium"]},
  "colours":{"type":"array","items":{"anyOf":[{"const":"r","title":"Red"},
                                              {"const":"g","title":"Green"}]}}},
  "required":["name","size"]}})";

TEST(TerminalAnswers, AskForEachField) {
  Typist user{.lines = {"Mira", "30", "yes", "2", "1, Green", "y"}};
  EXPECT_EQ(user.answer(kForm),
            R"({"action":"accept","content":{"name":"Mira","age":30,"member":true,"size":"m",)"
            R"("colours":["r","g"]}})");
  EXPECT_THAT(user.seen, AllOf(HasSubstr("The server asks: Who?"), HasSubstr("Your name"),
                               HasSubstr("2) m  Medium"), HasSubstr("Enter for false")));
}

TEST(TerminalAnswers, AskAgainForWhatDoesNotFit) {
  Typist user{.lines = {"", "M", "Mira", "-1", "", "", "x", "s", "", "yes"}};
  EXPECT_EQ(user.answer(kForm),
            R"({"action":"accept","content":{"name":"Mira","member":false,"size":"s"}})");
  EXPECT_THAT(user.seen, HasSubstr("choose one of the numbers"));
}

TEST(TerminalAnswers, TakeNoNumberThatCannotBeSent) {
  constexpr std::string_view kNumber =
      R"({"message":"m","requestedSchema":{"properties":{"n":{"type":"number"}}}})";
  Typist user{.lines = {"1e999", "12345678901234567890123", "1.5", "y"}};
  EXPECT_EQ(user.answer(kNumber), R"({"action":"accept","content":{"n":1.5}})");
}

TEST(TerminalAnswers, TheUserMayRefuseOrEnd) {
  constexpr std::string_view kEmpty = R"({"message":"Sure?","requestedSchema":{"properties":{}}})";
  EXPECT_EQ(Typist{.lines = {"no"}}.answer(kEmpty), R"({"action":"decline"})");
  EXPECT_EQ(Typist{.lines = {}}.answer(kEmpty), R"({"action":"cancel"})");
  EXPECT_EQ(Typist{.lines = {"Mira"}}.answer(kForm), R"({"action":"cancel"})");
  EXPECT_EQ(Typist{.lines = std::deque<std::string>(100, "x")}.answer(kForm),
            R"({"action":"cancel"})");
}

TEST(TerminalAnswers, AUrlIsShownAndNeedsConsent) {
  constexpr std::string_view kUrl =
      R"({"mode":"url","message":"Sign in","url":"https://example.com/x?y=1"})";
  Typist user{.lines = {"yes"}};
  EXPECT_EQ(user.answer(kUrl), R"({"action":"accept"})");
  EXPECT_THAT(user.seen,
              AllOf(HasSubstr("trust example.com"), HasSubstr("https://example.com/x?y=1")));
  EXPECT_EQ(Typist{.lines = {"n"}}.answer(kUrl), R"({"action":"decline"})");
  constexpr std::string_view kScript =
      R"({"mode":"url","message":"Sign in","url":"javascript:alert"})";
  EXPECT_EQ(Typist{.lines = {"yes"}}.answer(kScript), R"({"action":"decline"})");
}

}  // namespace
}  // namespace sluice

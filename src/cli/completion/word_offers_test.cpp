#include "cli/completion/word_offers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "json/json.hpp"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Place = TypedWord::Place;
using Words = std::vector<std::string>;

CommandOutline program_outline() {
  const auto command = [](std::string name, std::string operand) {
    return CommandOutline{
        .name = std::move(name),
        .description = {},
        .footer = {},
        .options =
            {{.names = {"words"}, .operand = std::move(operand), .text = {}, .is_argument = true},
             {.names = {"-H", "--header"}, .operand = "\"Name: value\"", .text = {}},
             {.names = {"--revision"}, .operand = "DATE", .text = {}},
             {.names = {"--json"}, .text = {}}},
        .commands = {}};
  };
  return {.name = "sluice",
          .description = {},
          .footer = {},
          .options = {},
          .commands = {command("call", "TARGET TOOL [NAME=VALUE]"), command("tools", "TARGET"),
                       command("read", "TARGET URI"),
                       command("prompt", "TARGET PROMPT [NAME=VALUE]"), command("login", "URL")}};
}

std::optional<TypedWord> typed_in(const Words& words) {
  static const CommandOutline outline = program_outline();
  return typed_word(outline, words);
}

json::object object_of(std::string_view text) {
  return parse_json(text).value().get_object();
}

Words words_of(const std::vector<Offer>& offers) {
  Words out;
  for (const Offer& offer : offers) out.push_back(offer.word);
  return out;
}

TEST(TypedWordTest, KnowsItsPlace) {
  EXPECT_EQ(typed_in({"call", ""})->place, Place::target);
  EXPECT_EQ(typed_in({"call", "notes", "se"})->place, Place::tool);
  EXPECT_EQ(typed_in({"call", "notes", "search", ""})->place, Place::tool_argument);
  EXPECT_EQ(typed_in({"read", "notes", ""})->place, Place::resource);
  EXPECT_EQ(typed_in({"prompt", "notes", ""})->place, Place::prompt);
  EXPECT_EQ(typed_in({"prompt", "notes", "p", "a=b", "c="})->place, Place::prompt_argument);
  EXPECT_FALSE(typed_in({"tools", "notes", ""}));
  EXPECT_FALSE(typed_in({"read", "notes", "a:b", ""}));
  EXPECT_FALSE(typed_in({"login", ""}));
  EXPECT_FALSE(typed_in({"nothing", ""}));
  EXPECT_FALSE(typed_in({"call"}));
  EXPECT_FALSE(typed_in({}));
}

TEST(TypedWordTest, OptionsAreNoWords) {
  const auto word = typed_in({"call", "-H", "X: y", "--json", "notes", "--revision=2025-11-25",
                              "search", "a=1", "--header", "Z: w", "b"});
  ASSERT_TRUE(word);
  EXPECT_EQ(word->target, "notes");
  EXPECT_EQ(word->name, "search");
  EXPECT_THAT(word->assignments, ElementsAre("a=1"));
  EXPECT_THAT(word->headers, ElementsAre("X: y", "Z: w"));
  EXPECT_EQ(word->revision, "2025-11-25");
  EXPECT_FALSE(typed_in({"call", "notes", "--js"}));
  EXPECT_FALSE(typed_in({"call", "notes", "--revision", "20"}));
}

TEST(TypedWordTest, ACommandThatIsTypedIsNotReadForOne) {
  EXPECT_FALSE(typed_in({"call", "--", "npx", ""}));
  EXPECT_FALSE(typed_in({"call", "search", "--", "npx", "a="}));
}

TEST(WordOffersTest, ArgumentsOfAToolThatAreNotGiven) {
  const json::object schema = object_of(
      R"({"properties":{"limit":{"type":"integer","description":"How many. At most 9"},
                        "query":{"type":"string"},"tags":{"type":"array","items":{"enum":["a","b"]}}},
          "required":["query"]})");
  const auto offers = tool_argument_offers(schema, {.begin = ""});
  EXPECT_THAT(offers, ElementsAre(Offer{"query=", "string"}, Offer{"limit=", "integer, How many"},
                                  Offer{"tags=", R"(("a"|"b")[])"}));
  EXPECT_THAT(words_of(tool_argument_offers(
                  schema, {.begin = "", .assignments = {"query=x", "tags=a", "limit:=5"}})),
              ElementsAre("tags="));
  EXPECT_THAT(words_of(tool_argument_offers(schema, {.begin = "tags="})),
              ElementsAre("tags=a", "tags=b"));
}

TEST(WordOffersTest, ValuesThatTheSchemaLists) {
  const json::object schema = object_of(
      R"({"properties":{"way":{"$ref":"#/$defs/way"},"fast":{"type":"boolean"},"n":{"enum":[1,2]},
                        "free":{"type":"string"}},
          "$defs":{"way":{"type":"string","enum":["up","down"]}}})");
  const auto values = [&](std::string begin) {
    return words_of(tool_argument_offers(schema, {.begin = std::move(begin)}));
  };
  EXPECT_THAT(values("way="), ElementsAre("way=up", "way=down"));
  EXPECT_THAT(values("fast=t"), ElementsAre("fast=true", "fast=false"));
  EXPECT_THAT(values("n="), ElementsAre("n=1", "n=2"));
  EXPECT_THAT(values("free="), IsEmpty());
  EXPECT_THAT(values("none="), IsEmpty());
}

TEST(WordOffersTest, ArgumentsOfAPrompt) {
  const json::object prompt = object_of(
      R"({"name":"p","arguments":[{"name":"style","description":"Short or long"},{"name":"to"},7]})");
  EXPECT_THAT(prompt_argument_offers(prompt, {.begin = "", .assignments = {"to=me"}}),
              ElementsAre(Offer{"style=", "Short or long"}));
  EXPECT_THAT(prompt_argument_offers(object_of("{}"), {}), IsEmpty());
}

TEST(WordOffersTest, LinesHaveOnlyWhatCanBeTyped) {
  const std::vector<Offer> offers = {{"search", "Finds\nnotes\tand \x1b[2Jmore"},
                                     {"se\x1b[2J", ""},
                                     {"se\tx", ""},
                                     {"", ""},
                                     {"--sampling=allow", ""},
                                     {"other", ""},
                                     {"set", std::string(500, 'x')}};
  const std::string lines = offer_lines(offers, "se");
  EXPECT_EQ(lines.substr(0, lines.find("set")), "search\tFinds notes and [2Jmore\n");
  EXPECT_LT(lines.size(), 200U);
  EXPECT_THAT(offer_lines(offers, ""), Not(HasSubstr("--sampling")));
  const std::vector<Offer> many(kMaxOffers + 5, Offer{"a"});
  EXPECT_EQ(offer_lines(many, "").size(), kMaxOffers * std::string("a\t\n").size());
}

}  // namespace
}  // namespace sluice

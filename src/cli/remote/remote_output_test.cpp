#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <sstream>
#include <string>

#include "cli/content/content_text.hpp"
#include "cli/content/saved_files.hpp"
#include "cli/remote/call_output.hpp"
#include "cli/remote/listing.hpp"
#include "core/file_test_support.hpp"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

json::value json_value(std::string_view text) {
  return parse_json(text).value();
}

std::string bytes_of(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(ToolListing, ShowsASignature) {
  const auto signature = [](std::string_view properties, std::string_view required) {
    return signature_of(json_value(R"({"inputSchema":{"properties":)" + std::string(properties) +
                                   R"(,"required":)" + std::string(required) + "}}")
                            .get_object());
  };
  EXPECT_EQ(signature(R"({"limit":{"type":"integer"},"query":{"type":"string"}})", R"(["query"])"),
            "(query: string, limit?: integer)");
  EXPECT_EQ(signature(R"({"a":{"enum":["x","y"]},"b":{"type":"array","items":{"type":"number"}},
                          "c":{"type":["string","null"]},"d":{}})",
                      R"([])"),
            R"((a?: "x"|"y", b?: number[], c?: string|null, d?))");
  EXPECT_EQ(signature_of(json_value(R"({"inputSchema":{"type":"object"}})").get_object()), "()");
  EXPECT_EQ(
      signature_of(
          json_value(R"({"arguments":[{"name":"a","required":true},{"name":"b"}]})").get_object()),
      "(a, b?)");
}

TEST(ToolListing, ShowsTheFirstSentence) {
  EXPECT_EQ(first_sentence("Adds numbers. Also words."), "Adds numbers");
  EXPECT_EQ(first_sentence("\n  Reads version 1.5 of it\nSecond line"), "Reads version 1.5 of it");
  EXPECT_EQ(first_sentence(std::string(300, 'x')).size(), kMaxSentence + 3);
  EXPECT_EQ(first_sentence("A\x1b[31m red"), "A[31m red");
}

TEST(SavedFiles, HaveNamesOfOurOwnAndReplaceNothing) {
  const test::TemporaryDirectory folder;
  const std::string place = folder.path();
  EXPECT_EQ(save_new_file(place, "image", "image/png", "1").value(), folder.path("image.png"));
  EXPECT_EQ(save_new_file(place, "image", "IMAGE/PNG; a=b", "2").value(),
            folder.path("image-1.png"));
  EXPECT_EQ(save_new_file(place, "audio", "../../evil", "3").value(), folder.path("audio.bin"));
  EXPECT_EQ(bytes_of(folder.path("image.png")), "1");
  EXPECT_EQ(bytes_of(folder.path("image-1.png")), "2");
  const auto failed = save_new_file(folder.path("none"), "image", "image/png", "1");
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("cannot save"));
}

TEST(ShownContent, IsTextOrAFile) {
  const test::TemporaryDirectory folder;
  const ShownContent shown = shown_content(json_value(R"([{"type":"text","text":"Hello\u001b[2J"},
                 {"type":"image","mimeType":"image/png","data":"aGk="},
                 {"type":"resource","resource":{"uri":"a:b","text":"inside"}},
                 {"type":"resource","resource":{"uri":"a:b","blob":"aGk=","mimeType":"text/csv"}},
                 {"type":"resource_link","uri":"a:b","name":"A\nB"},
                 {"type":"new","x":1}])")
                                               .get_array(),
                                           {.folder = folder.path()});
  EXPECT_EQ(shown.text, "Hello[2J\ninside\na:b  A B\n{\"type\":\"new\",\"x\":1}\n");
  EXPECT_THAT(shown.notes,
              ElementsAre("saved " + folder.path("image.png") + " (image/png, 2 bytes)",
                          "saved " + folder.path("resource.csv") + " (text/csv, 2 bytes)"));
  EXPECT_FALSE(shown.has_failed);
}

TEST(ShownContent, APipeGetsTheTextAsItIs) {
  const json::value blocks = json_value(R"([{"type":"text","text":"a\r\n\f\u001b[1m\u202e\n"}])");
  EXPECT_EQ(shown_content(blocks.get_array(), {.passes_text = true}).text,
            "a\r\n\f\x1b[1m\u202e\n");
  EXPECT_EQ(shown_content(blocks.get_array(), {}).text, "a\n[1m\n");
}

TEST(ShownContent, SaysWhatTheServerHasDoneWrong) {
  for (const char* const block :
       {R"([{"type":"image","mimeType":"image/png"}])", R"([{"type":"image","data":5}])"}) {
    const ShownContent shown = shown_content(json_value(block).get_array(), {});
    EXPECT_THAT(shown.notes, ElementsAre("the server has sent an image without data"));
    EXPECT_TRUE(shown.has_failed);
  }
  EXPECT_TRUE(server_mistake("content must be an array").has_failed);
}

TEST(ShownContent, ImagesAreShownWhereTheTerminalCan) {
  const test::TemporaryDirectory folder;
  ShownContent shown = shown_content(json_value(R"([{"type":"text","text":"Look:"},
                 {"type":"image","mimeType":"image/gif","data":"R0lGODlhEAAQAA=="}])")
                                         .get_array(),
                                     {.folder = folder.path(), .images = ImageProtocol::iterm2});
  EXPECT_EQ(shown.output(), "Look:\n\x1b]1337;File=inline=1;size=10:R0lGODlhEAAQAA==\a\n");
  EXPECT_EQ(shown.notes.size(), 1U);
  shown.replace_text(rest_of(shown.text, "Loo"));
  EXPECT_EQ(shown.output(), "k:\n\x1b]1337;File=inline=1;size=10:R0lGODlhEAAQAA==\a\n");
  shown.replace_text("");
  EXPECT_EQ(shown.output(), "\x1b]1337;File=inline=1;size=10:R0lGODlhEAAQAA==\a\n");
}

TEST(ShownContent, ImagesStayBeforeTheTextThatFollowsThem) {
  ShownContent shown{.text = "a\nb\n", .images = {{.position = 2, .sequence = "(image)\n"}}};
  shown.replace_text(rest_of(shown.text, "a"));
  EXPECT_EQ(shown.output(), "\n(image)\nb\n");
  shown.replace_text("\n\nb\n");
  EXPECT_EQ(shown.output(), "\n\n(image)\nb\n");
}

TEST(ShownContent, SaysWhatCannotBeSaved) {
  const ShownContent shown = shown_content(
      json_value(R"([{"type":"audio","mimeType":"audio/wav","data":"!"}])").get_array(), {});
  EXPECT_THAT(shown.notes, ElementsAre(HasSubstr("no Base64")));
  EXPECT_TRUE(shown.has_failed);
  EXPECT_THAT(shown.text, IsEmpty());
}

TEST(CallOutput, DoesNotRepeatWhatWasStreamed) {
  EXPECT_EQ(rest_of("one two\n", "one two"), "\n");
  EXPECT_EQ(rest_of("one two\n", "one two\n"), "");
  EXPECT_EQ(rest_of("one two three\n", "one two"), " three\n");
  EXPECT_EQ(rest_of("done\n", "one two"), "\ndone\n");
  EXPECT_EQ(rest_of("done\n", "one two\n"), "done\n");
}

TEST(CallOutput, ShowsProgressAsABar) {
  EXPECT_EQ(progress_text({.message = "Reading", .progress = 2, .total = 5}),
            "[########------------] 40 % Reading");
  EXPECT_EQ(progress_text({.progress = 7, .total = 5}), "[####################] 100 %");
  constexpr std::string_view kEmpty = "[--------------------] 0 %";
  EXPECT_EQ(progress_text({.progress = 7, .total = 0}), kEmpty);
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(progress_text({.progress = kInfinite, .total = kInfinite}), kEmpty);
}

}  // namespace
}  // namespace sluice

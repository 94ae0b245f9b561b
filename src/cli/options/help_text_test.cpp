#include "cli/options/help_text.hpp"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

namespace sluice {
namespace {

using ::testing::HasSubstr;

CommandOutline program() {
  CommandOutline outline;
  outline.name = "sluice";
  outline.description = "Streams tokens";
  CommandOutline serve;
  serve.name = "serve";
  serve.description = "Serve a model";
  serve.footer =
      "Examples:\n"
      "  sluice serve  # the built-in model\n"
      "  sluice serve --host 0.0.0.0 --api-key-file keys --tls-cert chain.pem --tls-key key.pem\n"
      "\n"
      "A paragraph\nof two lines.\n";
  serve.options = {
      {.names = {"-h", "--help"}, .text = "Print this help", .group = "Options"},
      {.names = {"PROMPT"},
       .operand = "PROMPT",
       .text = "What to ask",
       .is_argument = true,
       .takes_many = true},
      {.names = {"--hidden"}, .text = "Not listed"},
      {.names = {"--max-connections-per-client"},
       .operand = "N",
       .text = "Connections that one address may have open, unless it is a loopback address",
       .group = "Connections"},
      {.names = {"--via"}, .operand = "poll|sse", .text = "The way", .group = "Connections"}};
  outline.commands.push_back(serve);
  return outline;
}

std::size_t longest_line(std::string_view text) {
  std::size_t longest = 0;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    longest = std::max(longest, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return longest;
}

TEST(HelpText, IsWrapped) {
  const CommandOutline outline = program();
  EXPECT_EQ(help_text(outline, outline.commands[0], 80),
            "Serve a model.\n"
            "\n"
            "Usage: sluice serve [OPTIONS] [PROMPT...]\n"
            "\n"
            "Arguments:\n"
            "  PROMPT...                 What to ask\n"
            "\n"
            "Options:\n"
            "  -h, --help                Print this help\n"
            "\n"
            "Connections:\n"
            "  --max-connections-per-client N\n"
            "                            Connections that one address may have open, unless\n"
            "                            it is a loopback address\n"
            "  --via poll|sse            The way\n"
            "\n"
            "Examples:\n"
            "  # the built-in model\n"
            "  sluice serve\n"
            "  sluice serve --host 0.0.0.0 --api-key-file keys --tls-cert chain.pem \\\n"
            "      --tls-key key.pem\n"
            "\n"
            "A paragraph of two lines.\n");
}

TEST(HelpText, FitsEveryWidth) {
  const CommandOutline outline = program();
  for (const std::size_t width : {40U, 59U, 60U, 72U, 100U, 200U}) {
    EXPECT_LE(longest_line(help_text(outline, outline.commands[0], width)), width);
    EXPECT_LE(longest_line(help_text(outline, outline, width)), width);
  }
}

TEST(HelpText, ListsTheCommands) {
  const CommandOutline outline = program();
  EXPECT_THAT(help_text(outline, outline, 80),
              HasSubstr("Usage: sluice [OPTIONS] COMMAND\n\nCommands:\n  serve  "));
}

TEST(HelpText, OperandsNameTheirValues) {
  const CommandOutline outline = program();
  EXPECT_EQ(outline.commands[0].options[4].values(), (std::vector<std::string>{"poll", "sse"}));
  EXPECT_TRUE(outline.commands[0].options[3].values().empty());
}

}  // namespace
}  // namespace sluice

#include "cli/content/terminal_images.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <string>

#include "cli/options/exit_code.hpp"
#include "core/text/base64.hpp"

namespace sluice {
namespace {

using ::testing::IsEmpty;
using ::testing::StartsWith;

ImageProtocol protocol_in(std::map<std::string, std::string> variables) {
  return image_protocol([&](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

const std::string kGif("GIF89a\x10\0\x10\0", 10);

/// The head of a PNG of that size, and more bytes.
std::string png(unsigned char width_byte, std::size_t more) {
  std::string out("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x10", 24);
  out[17] = static_cast<char>(width_byte);
  return out + std::string(more, 'x');
}

TEST(TerminalImagesTest, TheEnvironmentTellsTheProtocol) {
  EXPECT_EQ(protocol_in({{"TERM", "xterm-256color"}}), ImageProtocol::none);
  EXPECT_EQ(protocol_in({{"TERM", "xterm-kitty"}}), ImageProtocol::kitty);
  EXPECT_EQ(protocol_in({{"KITTY_WINDOW_ID", "1"}}), ImageProtocol::kitty);
  EXPECT_EQ(protocol_in({{"TERM_PROGRAM", "ghostty"}}), ImageProtocol::kitty);
  EXPECT_EQ(protocol_in({{"TERM_PROGRAM", "WezTerm"}}), ImageProtocol::iterm2);
  EXPECT_EQ(protocol_in({{"TERM_PROGRAM", "iTerm.app"}}), ImageProtocol::iterm2);
  EXPECT_EQ(protocol_in({{"LC_TERMINAL", "iTerm2"}}), ImageProtocol::iterm2);
  EXPECT_EQ(protocol_in({{"TERM_PROGRAM", "vscode"}}), ImageProtocol::none);
  EXPECT_EQ(protocol_in({{"KITTY_WINDOW_ID", "1"}, {"TMUX", "/tmp/tmux"}}), ImageProtocol::none);
  EXPECT_EQ(protocol_in({{"LC_TERMINAL", "iTerm2"}, {"TERM", "screen-256color"}}),
            ImageProtocol::none);
}

TEST(TerminalImagesTest, KittyGetsAPngInPieces) {
  const std::string image = png(0, 5000);
  const std::string sequence = image_sequence(ImageProtocol::kitty, "image/png", image);
  std::string text;
  append_base64(text, image);
  ASSERT_GT(text.size(), 4096U);
  EXPECT_EQ(sequence, "\x1b_Ga=T,f=100,q=2,m=1;" + text.substr(0, 4096) + "\x1b\\\x1b_Gm=0;" +
                          text.substr(4096) + "\x1b\\\n");
  EXPECT_THAT(image_sequence(ImageProtocol::kitty, "image/gif", kGif), IsEmpty());
}

TEST(TerminalImagesTest, Iterm2GetsAnyImage) {
  EXPECT_EQ(image_sequence(ImageProtocol::iterm2, "image/gif", kGif),
            "\x1b]1337;File=inline=1;size=10:R0lGODlhEAAQAA==\a\n");
  EXPECT_THAT(image_sequence(ImageProtocol::iterm2, "Image/PNG", png(0, 10)),
              StartsWith("\x1b]1337;"));
}

TEST(TerminalImagesTest, WhatIsTooLargeOrNoImageIsNotShown) {
  for (const ImageProtocol protocol : {ImageProtocol::kitty, ImageProtocol::iterm2}) {
    EXPECT_THAT(image_sequence(protocol, "image/png", png(1, 0)), IsEmpty());
    EXPECT_THAT(image_sequence(protocol, "image/png", png(0, kMaxShownImage)), IsEmpty());
    EXPECT_THAT(image_sequence(protocol, "image/png", "\x89PNG"), IsEmpty());
    EXPECT_THAT(image_sequence(protocol, "image/jpeg", "\xff\xd8\xff"), IsEmpty());
    EXPECT_THAT(image_sequence(protocol, "image/gif", "GIF89a\xff\xff\xff\xff"), IsEmpty());
    EXPECT_THAT(image_sequence(protocol, "image/svg+xml", "<svg width=\"1\"/>"), IsEmpty());
    EXPECT_THAT(image_sequence(protocol, "audio/wav", png(0, 0)), IsEmpty());
    EXPECT_THAT(image_sequence(protocol, "image/png", ""), IsEmpty());
  }
  EXPECT_THAT(image_sequence(ImageProtocol::none, "image/png", png(0, 0)), IsEmpty());
}

TEST(TerminalImagesTest, AnUnknownChoiceIsAMistake) {
  EXPECT_EQ(chosen_images("always").error().code, kExitUsage);
  EXPECT_EQ(chosen_images("never").value(), ImageProtocol::none);
}

}  // namespace
}  // namespace sluice

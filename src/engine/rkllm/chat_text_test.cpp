#include "engine/rkllm/chat_text.hpp"

#include <gtest/gtest.h>

namespace sluice::rkllm {
namespace {

TEST(ChatText, OneTurnIsItsText) {
  EXPECT_EQ(chat_text({{.role = "user", .content = "Hi"}}), "Hi");
  EXPECT_EQ(
      chat_text({{.role = "system", .content = "Be brief."}, {.role = "user", .content = "Hi"}}),
      "Be brief.\n\nHi");
}

TEST(ChatText, SeveralTurnsHaveNames) {
  EXPECT_EQ(chat_text({{.role = "system", .content = "Be brief."},
                       {.role = "user", .content = "Hi"},
                       {.role = "assistant", .content = "Hello"},
                       {.role = "user", .content = "Bye"}}),
            "Be brief.\n\nUser: Hi\n\nAssistant: Hello\n\nUser: Bye\n\nAssistant:");
}

}  // namespace
}  // namespace sluice::rkllm

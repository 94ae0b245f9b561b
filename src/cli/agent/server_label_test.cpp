#include "cli/agent/server_label.hpp"

#include <gtest/gtest.h>
#include <string>

namespace sluice {
namespace {

TEST(ServerLabelTest, HasNothingOfAPathOrQuery) {
  EXPECT_EQ(server_label("http://h:1/s3cret?key=s3cret#s3cret", {}), "h:1");
  for (const std::string scheme : {"http+unix:", "HTTP+UNIX:", "Http+Unix:", "unix:", ""}) {
    EXPECT_EQ(server_label(scheme + "/tmp/s.sock#/mcp?key=s3cret", {}), scheme + "/tmp/s.sock");
    EXPECT_EQ(server_label(scheme + "/tmp/s.sock?key=s3cret", {}), scheme + "/tmp/s.sock");
  }
  EXPECT_EQ(server_label("notes", {}), "notes");
}

TEST(ServerLabelTest, OneThatIsTakenGetsANumber) {
  EXPECT_EQ(server_label("http://h/mcp?key=a", {"g", "h-2"}), "h");
  EXPECT_EQ(server_label("http://h/mcp?key=b", {"h"}), "h-2");
  EXPECT_EQ(server_label("http://h/mcp?key=c", {"h", "h-2"}), "h-3");
}

TEST(ServerIdentityTest, IsTheUrlWithoutSecretsTheCommandOrTheName) {
  const auto of = [](const std::string& word) { return server_identity({.word = word}); };
  const std::string one = of("http://h:1/mcp");
  EXPECT_EQ(one, of("http://h:1/mcp?key=s3cret#s3cret"));
  EXPECT_NE(one, of("http://h:2/mcp"));
  EXPECT_NE(one, of("http://h:1/other"));
  EXPECT_EQ(one.size(), 64U) << "a path may be secret, too";
  EXPECT_EQ(of("http+unix:/tmp/s.sock#/mcp?key=s3cret"), of("http+unix:/tmp/s.sock#/mcp"));
  EXPECT_NE(of("notes"), of("work"));
  EXPECT_NE(server_identity({.command = {"a b", "c"}}), server_identity({.command = {"a", "b c"}}));
}

}  // namespace
}  // namespace sluice

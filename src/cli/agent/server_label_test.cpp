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

}  // namespace
}  // namespace sluice

#include "net/loop/host_port.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(HostPort, IsReadAndWritten) {
  EXPECT_EQ(parse_host_port("127.0.0.1:8080"), (HostPort{"127.0.0.1", 8080}));
  EXPECT_EQ(parse_host_port("localhost:0"), (HostPort{"localhost", 0}));
  EXPECT_EQ(parse_host_port("[::1]:8080"), (HostPort{"::1", 8080}));
  EXPECT_EQ(parse_host_port("[::]:65535"), (HostPort{"::", 65535}));
  for (const auto* text : {"127.0.0.1:8080", "localhost:0", "[::1]:8080", "[fe80::1%lo]:80"}) {
    EXPECT_EQ(to_text(*parse_host_port(text)), text);
  }
}

TEST(HostPort, IsNothingElse) {
  for (const auto* bad : {"", ":", ":80", "host", "host:", "host:x", "host:65536", "host:-1",
                          "::1:80", "::1", "[::1]", "[::1]80", "[host]:80", "[]:80", "[[::1]]:80",
                          "a b:80", "[127.0.0.1:99]:80", "[http://a]:80", "a/b:80"}) {
    EXPECT_EQ(parse_host_port(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace sluice

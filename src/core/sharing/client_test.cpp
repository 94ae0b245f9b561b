#include "core/sharing/client.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(ClientOf, AnAddressOfIpv6CountsAsItsNetwork) {
  EXPECT_EQ(client_of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
  EXPECT_EQ(client_of("2001:db8:1:2::"), "2001:db8:1:2::/64");
  EXPECT_EQ(client_of("2001:db8:1:3::6"), "2001:db8:1:3::/64");
  EXPECT_EQ(client_of("::1"), "::/64");
}

TEST(ClientOf, OthersCountAsThemselves) {
  for (const char* const principal :
       {"192.0.2.1", "::ffff:192.0.2.1", "key:alice", "key:2001:db8::1", "uid:1000", "alice", ""}) {
    EXPECT_EQ(client_of(principal), principal);
  }
}

}  // namespace
}  // namespace sluice

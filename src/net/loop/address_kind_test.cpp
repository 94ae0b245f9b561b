#include "net/loop/address_kind.hpp"

#include <gtest/gtest.h>
#include <string>

namespace sluice {
namespace {

AddressKind kind(const std::string& address) {
  return kind_of(endpoints_of_address(address, 80).at(0));
}

TEST(AddressKindTest, KnowsWhatIsNotForEverybody) {
  for (const char* one :
       {"8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:8.8.8.8"}) {
    EXPECT_EQ(kind(one), AddressKind::global) << one;
  }
  for (const char* one :
       {"127.0.0.1", "127.255.1.2", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"}) {
    EXPECT_EQ(kind(one), AddressKind::loopback) << one;
  }
  for (const char* one : {"10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1", "fd00::1",
                          "fec0::1", "::ffff:10.0.0.1", "2002:0a00:0001::1", "64:ff9b::a00:1"}) {
    EXPECT_EQ(kind(one), AddressKind::private_use) << one;
  }
  for (const char* one : {"169.254.169.254", "fe80::1", "::ffff:169.254.169.254", "168.63.129.16",
                          "64:ff9b::a9fe:a9fe"}) {
    EXPECT_EQ(kind(one), AddressKind::link_local) << one;
  }
  for (const char* one :
       {"0.0.0.0", "::", "224.0.0.1", "255.255.255.255", "ff02::1", "::10.0.0.1",
        "::ffff:0:10.0.0.1", "64:ff9b:1:a00:0:100::", "2001:0:a00:1::1", "100::1"}) {
    EXPECT_EQ(kind(one), AddressKind::reserved) << one;
  }
}

TEST(AddressKindTest, KnowsThisMachineByNameAndAddress) {
  for (const char* host : {"localhost", "mcp.localhost", "127.0.0.1", "127.1", "::1"}) {
    EXPECT_TRUE(is_this_machine(host)) << host;
  }
  for (const char* host : {"localhost.example", "notlocalhost", "10.0.0.1", "fd00::1"}) {
    EXPECT_FALSE(is_this_machine(host)) << host;
  }
}

}  // namespace
}  // namespace sluice

#include "net/connection/connection_shares.hpp"

#include <gtest/gtest.h>
#include <optional>
#include <string>

namespace sluice {
namespace {

PeerAddress address(const std::string& text) {
  return PeerAddress::parse(text).value();
}

TEST(ConnectionShares, CountsByAddress) {
  const ConnectionTicket::Count all = std::make_shared<ConnectionCount>();
  ConnectionShares shares(all, {});
  std::optional<ConnectionTicket> first(std::in_place, shares.of(address("192.0.2.1"), 0));
  const ConnectionTicket second(shares.of(address("192.0.2.1"), 1));
  const ConnectionTicket v6(shares.of(address("2001:db8::1"), 2));
  const ConnectionTicket same_network(shares.of(address("2001:db8::ffff:1"), 3));
  EXPECT_EQ(shares.of(address("192.0.2.1"), 4)->open.load(), 2U);
  EXPECT_EQ(shares.of(address("192.0.2.2"), 4)->open.load(), 0U);
  EXPECT_EQ(shares.of(address("2001:db8::2"), 4)->open.load(), 2U);
  EXPECT_EQ(shares.of(address("2001:db8:0:1::2"), 4)->open.load(), 0U);
  first.reset();
  EXPECT_EQ(shares.of(address("192.0.2.1"), 3)->open.load(), 1U);
  EXPECT_EQ(all->open.load(), 3U);
}

TEST(ConnectionShares, ForgetsClientsThatHaveGone) {
  ConnectionShares shares(std::make_shared<ConnectionCount>(), {});
  const ConnectionTicket stays(shares.of(address("192.0.2.1"), 0));
  for (int i = 0; i < 5000; ++i) {
    shares.of(address("10.0." + std::to_string(i / 250) + "." + std::to_string(i % 250)), 1);
    ASSERT_LE(shares.size(), ConnectionShares::kKept + 3);
  }
  EXPECT_EQ(shares.of(address("192.0.2.1"), 1)->open.load(), 1U);
}

}  // namespace
}  // namespace sluice

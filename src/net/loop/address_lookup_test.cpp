#include "net/loop/address_lookup.hpp"

#include <array>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>

#include "net/client/client_test_support.hpp"

namespace sluice {
namespace {

TEST(AddressLookup, KnowsAddressesWithoutSearching) {
  EXPECT_EQ(endpoints_of_address("127.0.0.1", 80).size(), 1U);
  const Endpoints v6 = endpoints_of_address("::1", 8080);
  ASSERT_EQ(v6.size(), 1U);
  EXPECT_EQ(v6[0].address.ss_family, AF_INET6);
  EXPECT_EQ(reinterpret_cast<const sockaddr_in6&>(v6[0].address).sin6_port, htons(8080));
  EXPECT_TRUE(endpoints_of_address("localhost", 80).empty());
  EXPECT_TRUE(endpoints_of_address("", 80).empty());
}

TEST(AddressLookup, FindsNamesOnTheLoop) {
  EventLoop loop;
  loop.poll();
  std::array<AddressLookup, 20> lookups;  // more than there are threads
  std::size_t found = 0;
  for (AddressLookup& lookup : lookups) {
    lookup.start(loop, "localhost", 80, [&](const Result<Endpoints>& endpoints) {
      EXPECT_TRUE(loop.on_loop_thread());
      EXPECT_TRUE(endpoints && !endpoints->empty());
      ++found;
    });
  }
  EXPECT_EQ(found, 0U);
  EXPECT_TRUE(run_until(loop, [&] { return found == lookups.size(); }));
}

TEST(AddressLookup, SaysWhyThereIsNone) {
  EventLoop loop;
  AddressLookup lookup;
  std::optional<Result<Endpoints>> outcome;
  lookup.start(loop, "no name has spaces", 80,
               [&](Result<Endpoints> endpoints) { outcome.emplace(std::move(endpoints)); });
  EXPECT_TRUE(run_until(loop, [&] { return outcome.has_value(); }));
  ASSERT_FALSE(*outcome);
  EXPECT_NE(outcome->error().message, "");
}

TEST(AddressLookup, WhatIsForgottenIsNotHeardOf) {
  for (int i = 0; i < 100; ++i) {
    auto loop = std::make_unique<EventLoop>();
    {
      AddressLookup lookup;
      lookup.start(*loop, "localhost", 80, [](const Result<Endpoints>&) { FAIL(); });
      // `lookup` is destroyed at some point of the search, or before the result reaches the loop.
      for (int n = 0; n < 10 * i; ++n) std::this_thread::yield();
    }
    loop->poll();
    loop = nullptr;
  }
}

}  // namespace
}  // namespace sluice

#include "auth/trusted_proxies.hpp"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace sluice {
namespace {

using Fields = std::vector<HeaderField>;

TrustedProxies trusting(const std::vector<std::string>& networks,
                        TrustedProxies::Field field = TrustedProxies::Field::x_forwarded_for) {
  return TrustedProxies::make(networks, field).value();
}

HttpRequest request_from(const char* peer, const Fields& fields) {
  HttpRequest request;
  request.peer = PeerAddress::parse(peer).value();
  request.headers = fields;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    request.known[static_cast<std::size_t>(known_header(fields[i].name))] =
        static_cast<std::uint8_t>(i + 1);
  }
  return request;
}

std::string client(const TrustedProxies& proxies, const char* peer, const Fields& fields) {
  return proxies.client_of(request_from(peer, fields)).to_string();
}

TEST(TrustedProxies, KnowAddressesAndPrefixes) {
  const TrustedProxies proxies = trusting({"192.0.2.1", "10.1.0.0/15", "2001:db8::/33", "::1"});
  for (const char* trusted : {"192.0.2.1", "10.0.0.1", "10.1.255.255", "2001:db8:7fff::1", "::1"}) {
    EXPECT_TRUE(proxies.trusts(PeerAddress::parse(trusted).value())) << trusted;
  }
  for (const char* other : {"192.0.2.2", "10.2.0.1", "2001:db8:8000::1", "::2", "127.0.0.1"}) {
    EXPECT_FALSE(proxies.trusts(PeerAddress::parse(other).value())) << other;
  }
  EXPECT_TRUE(trusting({"0.0.0.0/0"}).trusts(PeerAddress::parse("192.0.2.2").value()));
  EXPECT_FALSE(trusting({"0.0.0.0/0"}).trusts(PeerAddress::parse("::2").value()));
  EXPECT_TRUE(trusting({"::ffff:10.0.0.0/104"}).trusts(PeerAddress::parse("10.1.2.3").value()));
  EXPECT_FALSE(trusting({"::ffff:10.0.0.0/104"}).trusts(PeerAddress::parse("11.1.2.3").value()));
  EXPECT_FALSE(trusting({}).trusts(PeerAddress::parse("::2").value()));
}

TEST(TrustedProxies, NamesWhatIsNoNetwork) {
  for (const char* text :
       {"", "proxy", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/8x", "::/129", "/8"}) {
    const Result<TrustedProxies> made =
        TrustedProxies::make({"::1", text}, TrustedProxies::Field::forwarded);
    ASSERT_FALSE(made) << text;
    EXPECT_NE(made.error().message.find("'" + std::string(text) + "'"), std::string::npos);
  }
}

TEST(TrustedProxies, BelievesOnlyWhatTrustedProxiesSay) {
  const TrustedProxies proxies = trusting({"10.0.0.0/8", "::1"});
  EXPECT_EQ(client(proxies, "192.0.2.9", {{"X-Forwarded-For", "192.0.2.1"}}), "192.0.2.9");
  EXPECT_EQ(client(proxies, "10.0.0.1", {}), "10.0.0.1");
  EXPECT_EQ(client(proxies, "10.0.0.1", {{"x-forwarded-for", "192.0.2.1"}}), "192.0.2.1");
  EXPECT_EQ(client(proxies, "::1", {{"X-Forwarded-For", "203.0.113.7, 192.0.2.1 , 10.9.9.9"}}),
            "192.0.2.1")
      << "the addresses before it come from the client itself";
  EXPECT_EQ(client(proxies, "::1",
                   {{"X-Forwarded-For", "203.0.113.7"}, {"X-Forwarded-For", "192.0.2.1:99"}}),
            "192.0.2.1");
  EXPECT_EQ(client(proxies, "::1", {{"X-Forwarded-For", "10.1.1.1, 10.2.2.2"}}), "10.1.1.1");
  EXPECT_EQ(client(proxies, "::1", {{"X-Forwarded-For", "192.0.2.1, unknown, 10.2.2.2"}}),
            "10.2.2.2");
  EXPECT_EQ(client(proxies, "::1", {{"X-Forwarded-For", ","}, {"X-Forwarded-For", ""}}), "::1");
  EXPECT_EQ(client(proxies, "::1", {{"X-Forwarded-For", "192.0.2.1, ,"}}), "192.0.2.1");
  EXPECT_EQ(client(proxies, "::1", {{"X-Forwarded-For", "[2001:db8::1]junk"}}), "::1");
  EXPECT_EQ(client(proxies, "::1", {{"Forwarded", "for=192.0.2.1"}}), "::1")
      << "the proxy may have forwarded this field from the client";
}

TEST(TrustedProxies, ReadsForwarded) {
  const TrustedProxies proxies = trusting({"10.0.0.0/8"}, TrustedProxies::Field::forwarded);
  const auto of = [&](const char* value) {
    return client(proxies, "10.0.0.1", {{"Forwarded", value}});
  };
  EXPECT_EQ(of("for=192.0.2.60;proto=http;by=203.0.113.43"), "192.0.2.60");
  EXPECT_EQ(of("proto=https; For=\"[2001:db8:cafe::17]:4711\""), "2001:db8:cafe::17");
  EXPECT_EQ(of("for=\"x, for=192.0.2.43, for=198.51.100.17"), "198.51.100.17");
  EXPECT_EQ(of("for=192.0.2.43, for=10.3.3.3"), "192.0.2.43");
  EXPECT_EQ(of("for=_hidden, for=10.3.3.3"), "10.3.3.3");
  EXPECT_EQ(of("by=192.0.2.43"), "10.0.0.1");
  for (const char* forged :
       {R"(for=192.0.2.1;host="a,for=198.51.100.6;x")",
        R"(host="a;for=198.51.100.6;b";for=192.0.2.1)",
        R"(for=198.51.100.6;x=", for=192.0.2.1;host="a")", R"(x="\, for=192.0.2.1;host="a\\")",
        R"(for=198.51.100.6, for=192.0.2.1;host="a\",for=198.51.100.6;b\"")"}) {
    EXPECT_EQ(of(forged), "192.0.2.1") << forged;
  }
  EXPECT_EQ(of("for=192.0.2.1;for=198.51.100.6"), "10.0.0.1")
      << "two parameters \"for\" are ambiguous";
  EXPECT_EQ(client(proxies, "10.0.0.1", {{"X-Forwarded-For", "192.0.2.1"}}), "10.0.0.1");
}

TEST(TrustedProxies, TellWhoHidesItsClients) {
  const TrustedProxies proxies = trusting({"10.0.0.0/8"});
  const auto hides = [&](const char* peer, const Fields& fields) {
    return proxies.hides_client(request_from(peer, fields));
  };
  EXPECT_TRUE(hides("10.0.0.1", {}));
  EXPECT_TRUE(hides("10.0.0.1", {{"Forwarded", "for=192.0.2.1"}})) << "the other field";
  EXPECT_FALSE(hides("10.0.0.1", {{"X-Forwarded-For", "192.0.2.1"}}));
  EXPECT_FALSE(hides("10.0.0.1", {{"X-Forwarded-For", "10.0.0.1"}})) << "it asks for itself";
  EXPECT_FALSE(hides("192.0.2.9", {}));
  EXPECT_TRUE(hides("192.0.2.9", {{"X-Forwarded-For", "192.0.2.1"}}));
  EXPECT_TRUE(hides("192.0.2.9", {{"Forwarded", "for=192.0.2.1"}}));
}

}  // namespace
}  // namespace sluice

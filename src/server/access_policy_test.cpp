#include "server/access_policy.hpp"

#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {
namespace {

TEST(AccessPolicy, AnswersToItsOwnNamesOnly) {
  const AccessPolicy plain(AccessPolicy::Options{});
  AccessPolicy::Options options;
  options.allowed_hosts = {"Model.Example"};
  const AccessPolicy named(std::move(options));
  options = {};
  options.allowed_hosts = {"*"};
  const AccessPolicy any(std::move(options));

  for (const std::string_view host : {"localhost", "LOCALHOST:8080", "a.localhost", "127.0.0.1",
                                      "127.0.0.1:80", "127.1.2.3:1", "[::1]", "[::1]:8080"}) {
    EXPECT_TRUE(plain.host_allowed(host)) << host;
  }
  for (const std::string_view host : {"",
                                      ":80",
                                      "model.example",
                                      "evil.example:8080",
                                      "localhost.evil.example",
                                      ".localhost",
                                      "xlocalhost",
                                      "127.0.0.1.evil.example",
                                      "[::1",
                                      "[]",
                                      "[evil]",
                                      "1.2.3",
                                      "192.0.2.7:1",  // some other machine's
                                      "[2001:db8::1]:1",
                                      "0.0.0.0",
                                      "[::1].evil.example",
                                      "[::1]x:1",
                                      "localhost:x@evil.example",
                                      "localhost:80x",
                                      "localhost@evil.example",
                                      "a@localhost",
                                      "evil.example/.localhost",
                                      "evil.example#.localhost",
                                      "evil.example\\.localhost"}) {
    EXPECT_FALSE(plain.host_allowed(host)) << host;
  }
  EXPECT_TRUE(named.host_allowed("model.example:8443"));
  EXPECT_TRUE(named.host_allowed("localhost"));
  EXPECT_FALSE(named.host_allowed("a.model.example"));
  EXPECT_TRUE(any.host_allowed("evil.example"));
  EXPECT_TRUE(any.host_allowed("192.0.2.7"));
  EXPECT_FALSE(any.host_allowed(""));
}

TEST(AccessPolicy, LetsPagesOfItsOwnCall) {
  AccessPolicy::Options options;
  options.allowed_origins = {"https://app.example"};
  const AccessPolicy policy(std::move(options));
  struct Case {
    std::string_view origin;
    std::string_view host;
    bool tls;
    bool allowed;
  };
  for (const Case& c : {
           Case{"https://app.example", "model.example", true, true},
           Case{"HTTPS://App.Example", "model.example", true, true},
           Case{"http://app.example", "model.example", false, false},
           Case{"https://app.example:444", "model.example", true, false},
           Case{"https://app.example.evil.example", "model.example", true, false},
           // The page is this server's own.
           Case{"http://model.example:8080", "model.example:8080", false, true},
           Case{"https://model.example", "model.example", true, true},
           Case{"http://model.example", "model.example", true, false},
           Case{"https://model.example", "model.example", false, false},
           Case{"http://model.example:1", "model.example:2", false, false},
           // The page is this machine's.
           Case{"http://localhost:3000", "192.0.2.1:8080", false, true},
           Case{"http://127.0.0.1:3000", "192.0.2.1:8080", false, true},
           Case{"http://[::1]:3000", "192.0.2.1:8080", false, true},
           Case{"http://127.evil.example", "192.0.2.1:8080", false, false},
           Case{"http://192.0.2.9", "192.0.2.1:8080", false, false},
           // And these only look like it.
           Case{"http://127.0.0.1:x@evil.example", "192.0.2.1:8080", false, false},
           Case{"http://[::1].evil.example", "192.0.2.1:8080", false, false},
           Case{"http://evil.example/.localhost", "192.0.2.1:8080", false, false},
           Case{"http://a@localhost", "192.0.2.1:8080", false, false},
           Case{"null", "model.example", false, false},
           Case{"", "model.example", false, false},
           Case{"file://", "", false, false},
           Case{"chrome-extension://localhost", "localhost", false, false},
       }) {
    EXPECT_EQ(policy.origin_allowed(c.origin, c.host, c.tls), c.allowed)
        << c.origin << " to " << c.host;
  }
  AccessPolicy::Options every;
  every.allowed_origins = {"*"};
  EXPECT_TRUE(AccessPolicy(std::move(every)).origin_allowed("null", "a", false));
}

/// A request with one field.
struct RequestOfOneField {
  RequestOfOneField(KnownHeader name, std::string_view value) : field{"", value} {
    request.headers = {&field, 1};
    request.known[static_cast<std::size_t>(name)] = 1;
  }
  RequestOfOneField(const RequestOfOneField&) = delete;
  RequestOfOneField& operator=(const RequestOfOneField&) = delete;
  HeaderField field;
  HttpRequest request;
};

TEST(AccessPolicy, KnowsCallersByTheirKeys) {
  AccessPolicy::Options options;
  options.api_keys = {{"ann", "secret"}};
  const AccessPolicy policy(std::move(options));
  EXPECT_TRUE(policy.requires_key());
  EXPECT_EQ(policy.principal_of(HttpRequest{}).id, "");
  const auto principal = [&policy](KnownHeader name, std::string_view value) {
    return policy.principal_of(RequestOfOneField(name, value).request).id;
  };
  EXPECT_EQ(principal(KnownHeader::authorization, "Bearer secret"), "key:ann");
  EXPECT_EQ(principal(KnownHeader::authorization, "Bearer wrong"), "");
  EXPECT_EQ(principal(KnownHeader::authorization, "secret"), "");
  EXPECT_EQ(principal(KnownHeader::x_api_key, "secret"), "key:ann");
  EXPECT_EQ(principal(KnownHeader::x_api_key, ""), "");
  for (const KnownHeader name : {KnownHeader::authorization, KnownHeader::x_api_key}) {
    RequestOfOneField twice(name, name == KnownHeader::x_api_key ? "secret" : "Bearer secret");
    twice.request.repeated_known = 1U << static_cast<unsigned>(name);
    EXPECT_EQ(policy.principal_of(twice.request).id, "");
  }
}

TEST(AccessPolicy, WithoutKeysCallersAreTheirAddresses) {
  const AccessPolicy policy(AccessPolicy::Options{});
  EXPECT_FALSE(policy.requires_key());
  const HttpRequest request;
  EXPECT_EQ(policy.principal_of(request).id, request.peer.to_string());
  EXPECT_NE(policy.principal_of(request).id, "");
  EXPECT_FALSE(policy.principal_of(request).isolated);
}

}  // namespace
}  // namespace sluice

#include "auth/access_policy.hpp"

#include <expected>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "auth/api_keys.hpp"

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

  for (const std::string_view host :
       {"localhost", "LOCALHOST:8080", "a.localhost", "127.0.0.1", "127.0.0.1:80", "127.1.2.3:1",
        "localhost:", "localhost:65535", "[::1]", "[::1]:8080"}) {
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
                                      "localhost:65536",
                                      "localhost:99999999999999999999",
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

/// A request with header fields.
struct RequestWithFields {
  explicit RequestWithFields(std::vector<HeaderField> given) : fields(std::move(given)) {
    request.headers = fields;
    request.method_name = "POST";
    request.target = "/mcp?a=b";
  }
  RequestWithFields(const RequestWithFields&) = delete;
  RequestWithFields& operator=(const RequestWithFields&) = delete;
  std::vector<HeaderField> fields;
  HttpRequest request;
};

using Answer = std::expected<Principal, Refusal>;

class AuthenticatorOf final : public Authenticator {
 public:
  explicit AuthenticatorOf(std::function<Answer(const RequestHead&)> answer)
      : answer_(std::move(answer)) {}
  Answer authenticate(const RequestHead& head) override { return answer_(head); }

 private:
  std::function<Answer(const RequestHead&)> answer_;
};

AccessPolicy policy_of(std::shared_ptr<Authenticator> authenticator) {
  AccessPolicy::Options options;
  options.authenticator = std::move(authenticator);
  return AccessPolicy(std::move(options));
}

/// The id, or the status and the challenge.
std::string told(const Answer& answer) {
  if (answer) return answer->id;
  return std::to_string(answer.error().status) + " " + answer.error().challenge;
}

TEST(AccessPolicy, KnowsCallersByTheirKeys) {
  const AccessPolicy policy = policy_of(std::make_shared<ApiKeys>(
      std::vector<std::pair<std::string, std::string>>{{"ann", "secret"}}));
  EXPECT_TRUE(policy.authenticates());
  const auto who = [&policy](std::vector<HeaderField> fields) {
    return told(policy.authenticate(RequestWithFields(std::move(fields)).request));
  };
  EXPECT_EQ(who({}), "401 Bearer");
  EXPECT_EQ(who({{"authorization", "Bearer secret"}}), "key:ann");
  EXPECT_EQ(who({{"Authorization", "Bearer wrong"}}), "401 Bearer");
  EXPECT_EQ(who({{"Authorization", "secret"}}), "401 Bearer");
  EXPECT_EQ(who({{"X-API-Key", "secret"}}), "key:ann");
  EXPECT_EQ(who({{"X-API-Key", ""}, {"Authorization", "Bearer secret"}}), "401 Bearer");
  EXPECT_EQ(who({{"X-API-Key", "secret"}, {"x-api-key", "secret"}}), "401 Bearer");
  EXPECT_EQ(who({{"X-API-Key", "secret"}, {"Authorization", "a"}, {"Authorization", "b"}}),
            "401 Bearer");
}

TEST(AccessPolicy, AnAuthenticatorSeesTheHead) {
  const AccessPolicy policy =
      policy_of(std::make_shared<AuthenticatorOf>([](const RequestHead& head) -> Answer {
        EXPECT_EQ(head.method(), "POST");
        EXPECT_EQ(head.target(), "/mcp?a=b");
        EXPECT_EQ(head.field("x-TICKET"), "7");
        EXPECT_EQ(head.field("X-Empty"), "");
        EXPECT_FALSE(head.field("X-Other"));
        EXPECT_FALSE(head.field("X-Twice"));
        EXPECT_TRUE(head.is_repeated("X-TWICE"));
        EXPECT_FALSE(head.is_tls());
        return Principal{.id = head.address(), .isolated = false};
      }));
  RequestWithFields request(
      {{"X-Ticket", "7"}, {"X-Empty", ""}, {"X-Twice", "1"}, {"x-twice", "1"}});
  request.request.peer = PeerAddress::parse("192.0.2.7").value();
  const Answer answer = policy.authenticate(request.request);
  EXPECT_EQ(told(answer), "192.0.2.7");
  EXPECT_FALSE(answer->isolated);
}

TEST(AccessPolicy, WhatAnAuthenticatorMayNotSayLetsNobodyIn) {
  const auto answer_to = [](const std::function<Answer()>& answer) {
    const AccessPolicy policy = policy_of(
        std::make_shared<AuthenticatorOf>([answer](const RequestHead&) { return answer(); }));
    const Answer said = policy.authenticate(RequestWithFields({}).request);
    if (!said && said.error().status == 500) EXPECT_EQ(said.error().message, "Internal error");
    return told(said);
  };
  const auto named = [&](const std::string& id) {
    return answer_to([id] { return Principal{.id = id}; });
  };
  const auto refused = [&](const Refusal& refusal) {
    return answer_to([refusal] { return std::unexpected(refusal); });
  };
  EXPECT_EQ(named("ann"), "ann");
  EXPECT_EQ(named(std::string(1024, 'a')), std::string(1024, 'a'));
  EXPECT_EQ(named(""), "500 ");
  EXPECT_EQ(named(std::string(1025, 'a')), "500 ");
  EXPECT_EQ(named("uid:0"), "500 ");
  EXPECT_EQ(named("session:x"), "500 ");
  EXPECT_EQ(refused(Refusal::forbidden("no")), "403 ");
  EXPECT_EQ(refused(Refusal::unauthorized("no", "Bearer realm=\"a\"")), "401 Bearer realm=\"a\"");
  EXPECT_EQ(refused(Refusal::unauthorized("no", "Bearer\r\nSet-Cookie: a=b")), "500 ");
  EXPECT_EQ(refused({.status = 503}), "503 ");
  EXPECT_EQ(refused({.status = 200}), "500 ");
  EXPECT_EQ(refused({.status = 600}), "500 ");
  EXPECT_EQ(answer_to([]() -> Answer { throw std::runtime_error("secret"); }), "500 ");
  EXPECT_EQ(answer_to([]() -> Answer { throw 7; }), "500 ");
}

TEST(AccessPolicy, WithoutAnAuthenticatorCallersAreTheirAddresses) {
  const AccessPolicy policy(AccessPolicy::Options{});
  EXPECT_FALSE(policy.authenticates());
  HttpRequest request;
  request.peer = PeerAddress::parse("192.0.2.7").value();
  EXPECT_EQ(policy.principal_by_address(request).id, "192.0.2.7");
  EXPECT_FALSE(policy.principal_by_address(request).isolated);
}

}  // namespace
}  // namespace sluice

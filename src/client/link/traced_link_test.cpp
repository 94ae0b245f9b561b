#include "client/link/traced_link.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "net/http/url.hpp"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A link whose server answers each message with what the test says, at once.
class EchoLink final : public ServerLink {
 public:
  void open(Owner& owner) override { owner_ = &owner; }
  Result<void> send(OutgoingMessage message) override {
    owner_->on_message("said " + message.text);
    owner_->on_reply(message.id, "answered " + message.text);
    owner_->on_unreadable("rubbish", Error(0, "no JSON"));
    owner_->on_broken_off(message.id, Error(0, "it is gone"));
    return {};
  }
  bool drop(const RequestId& /*id*/) override { return true; }
  bool reopen() override { return true; }
  [[nodiscard]] bool carries_headers() const override { return true; }

 private:
  Owner* owner_ = nullptr;
};

class TracedLinkTest : public ::testing::Test, protected ServerLink::Owner {
 protected:
  void on_message(std::string_view text) override { heard.emplace_back(text); }
  bool on_reply(const RequestId& /*id*/, std::string_view text) override {
    heard.emplace_back(text);
    return false;
  }
  void on_unreadable(std::string_view text, const Error& /*why*/) override {
    heard.emplace_back(text);
  }
  void on_unanswered(const RequestId& /*id*/, const Error& /*why*/) override {}
  void on_broken_off(const RequestId& id, const Error& /*why*/) override {
    heard.push_back("broke off " + id);
  }
  void on_session_over(const RequestId& /*id*/) override {}
  [[nodiscard]] bool awaits(const RequestId& /*id*/) const override { return true; }
  void on_lost(const Error& /*why*/) override {}

  std::vector<std::string> heard;
  std::vector<std::string> seen;
};

TEST_F(TracedLinkTest, ShowsMessagesBothWaysAndPassesThemOn) {
  const auto link = traced(std::make_unique<EchoLink>(), "stdio", [this](const Traffic& traffic) {
    seen.push_back((traffic.is_sent ? "> " : "< ") + std::string(traffic.transport) + " " +
                   std::string(traffic.message));
  });
  link->open(*this);
  ASSERT_TRUE(link->send({.text = "hello", .id = "1"}));
  EXPECT_THAT(heard, ElementsAre("said hello", "answered hello", "rubbish", "broke off 1"));
  EXPECT_THAT(seen, ElementsAre("> stdio hello", "< stdio said hello", "< stdio answered hello",
                                "< stdio rubbish"));
  EXPECT_TRUE(link->drop({}));
  EXPECT_TRUE(link->reopen());
  EXPECT_TRUE(link->carries_headers());
}

TEST_F(TracedLinkTest, SecretsAreMaskedInMessagesHoweverJsonWritesThem) {
  const auto link = traced(
      std::make_unique<EchoLink>(), "http",
      [this](const Traffic& traffic) { seen.emplace_back(traffic.message); },
      std::make_shared<KnownSecrets>(std::vector<std::string>{"a/b\"c=="}));
  link->open(*this);
  ASSERT_TRUE(link->send({.text = R"({"a":"\u0061\u002fb\"c\u003D=","b":1.50})"}));
  EXPECT_THAT(seen.at(0), HasSubstr(R"({"a":"***","b":1.5)"));
  seen.clear();
  heard.clear();
  ASSERT_TRUE(link->send({.text = R"({"a":"a\/b\"c==","b":"a/b\"c=="})"}));
  EXPECT_EQ(seen.at(0), R"({"a":"***","b":"***"})");
  EXPECT_EQ(heard.at(0), R"(said {"a":"a\/b\"c==","b":"a/b\"c=="})") << "only shown so";
}

TEST_F(TracedLinkTest, AnExceptionOfTheUserHoldsNothingUp) {
  const auto link = traced(std::make_unique<EchoLink>(), "stdio",
                           [](const Traffic&) { throw std::runtime_error("full"); });
  link->open(*this);
  ASSERT_TRUE(link->send({.text = "hello"}));
  EXPECT_EQ(heard.size(), 4U);
}

TEST_F(TracedLinkTest, WithoutAViewerItIsTheLinkItself) {
  auto plain = std::make_unique<EchoLink>();
  ServerLink* const itself = plain.get();
  EXPECT_EQ(traced(std::move(plain), "stdio", {}).get(), itself);
  EXPECT_FALSE(http_tap({}));
}

TEST_F(TracedLinkTest, HeadsHaveNothingThatAuthorizes) {
  std::vector<Traffic> heads;
  const HttpTap tap = http_tap([&heads](const Traffic& traffic) { heads.push_back(traffic); });
  const Url url = *parse_url("https://host/mcp?key=abc");
  const std::vector<HeaderField> sent = {{"Authorization", "Bearer abc"},
                                         {"X-Api-Key", "abc"},
                                         {"X-Vault", "abc"},
                                         {"Mcp-Session-Id", "0123456789abcdef0123456789abcdef"},
                                         {"Mcp-Name", "search"},
                                         {"mcp-param-region", "abc"},
                                         {"X-Custom", "Bearer abc"}};
  tap({.method = "POST", .url = &url, .headers = std::span<const HeaderField>(sent)});
  tap({.url = &url,
       .status = 302,
       .headers = {{"Location", "/there?code=abc"}, {"Set-Cookie", "a=b"}}});
  ASSERT_EQ(heads.size(), 2U);
  EXPECT_TRUE(heads[0].is_sent);
  EXPECT_EQ(heads[0].start, "POST https://host/mcp?key=***");
  using Field = std::pair<std::string, std::string>;
  EXPECT_THAT(
      heads[0].headers,
      ElementsAre(Field("Authorization", "***"), Field("X-Api-Key", "***"), Field("X-Vault", "***"),
                  Field("Mcp-Session-Id", "01234567..."), Field("Mcp-Name", "search"),
                  Field("mcp-param-region", "***"), Field("X-Custom", "***")));
  EXPECT_FALSE(heads[1].is_sent);
  EXPECT_EQ(heads[1].start, "302");
  EXPECT_THAT(heads[1].headers,
              ElementsAre(Field("Location", "/there?code=***"), Field("Set-Cookie", "***")));
  EXPECT_THAT(heads[1].message, IsEmpty());
}

}  // namespace
}  // namespace sluice

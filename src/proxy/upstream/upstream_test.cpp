#include "proxy/upstream/upstream.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "core/text/secrets.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(UpstreamTest, ErrorsKeepTheirDataButForSecrets) {
  UpstreamOptions options{.label = "behind", .open_link = {}};
  options.secrets = std::make_shared<KnownSecrets>(
      secrets_in_url("https://h/p?key=s3cr\"et&transport=http&verbose=true&n=1234"));
  const Upstream upstream(std::move(options));
  const Error told = upstream.explained(
      {-32000, "no access for s3cr\"et",
       R"({"retryable":true,"n":1234,"s3cr\"et":["s3cr\"et",{"url":"https://h/s3cr\"et"}]})"});
  EXPECT_THAT(told.message, HasSubstr("no access for ***"));
  const auto data = parse_json(told.data);
  ASSERT_TRUE(data) << told.data;
  EXPECT_THAT(told.data, HasSubstr(R"("retryable":true,"n":1234)"));
  EXPECT_THAT(told.data, HasSubstr(R"("***":["***",{"url":"https://h/***"}])"));
  EXPECT_THAT(told.data, Not(HasSubstr("s3cr")));
}

TEST(UpstreamTest, NamesThatAreMaskedAlikeKeepTheirMembers) {
  UpstreamOptions options{.label = "behind", .open_link = {}};
  options.secrets = std::make_shared<KnownSecrets>(std::vector<std::string>{"one-1", "two-2"});
  const Upstream upstream(std::move(options));
  const Error told = upstream.explained({-32000, "no", R"({"one-1":1,"two-2":2,"other":3})"});
  EXPECT_THAT(told.data, HasSubstr(R"({"***":1,"***2":2,"other":3})"));
}

TEST(UpstreamTest, ManyNamesThatAreMaskedAlikeTakeLittleTimeAndRoom) {
  UpstreamOptions options{.label = "behind", .open_link = {}};
  options.secrets = std::make_shared<KnownSecrets>(std::vector<std::string>{"abcd1234"});
  const Upstream upstream(std::move(options));
  std::string data = "{";
  std::string name;
  for (int i = 0; i < 2000; ++i) {
    name += "abcd1234";
    data.append("\"").append(name).append("\":1,\"***").append(std::to_string(i)).append("\":2,");
  }
  data.back() = '}';
  EXPECT_LT(upstream.explained({-32000, "no", data}).data.size(), 100'000U);
}

TEST(UpstreamTest, SecretsAreMaskedAsTheyStandInQuotedJson) {
  UpstreamOptions options{.label = "behind", .open_link = {}};
  options.secrets = std::make_shared<KnownSecrets>(std::vector<std::string>{"hunter2/h=\"x"});
  const Upstream upstream(std::move(options));
  EXPECT_THAT(
      upstream.explained({-32000, R"(got {"key":"hunter2\/h=\"x"} or hunter2/h=\"x)"}).message,
      HasSubstr(R"(got {"key":"***"} or ***)"));
}

TEST(UpstreamTest, ATokenThatBecomesKnownIsMasked) {
  const auto secrets = std::make_shared<KnownSecrets>();
  const Upstream upstream({.label = "behind", .secrets = secrets, .open_link = {}});
  const auto said = [&upstream] {
    return upstream.explained({-32000, "refused Bearer tok_1, tok_2"}).message;
  };
  EXPECT_THAT(said(), HasSubstr("Bearer tok_1, tok_2"));
  secrets->add(secrets_in_header("Authorization", "Bearer tok_1"));
  secrets->add(secrets_in_header("Authorization", "Bearer tok_2"));
  EXPECT_THAT(said(), HasSubstr("refused ***, ***"));
}

TEST(UpstreamTest, ASecretThatIsANumberIsMasked) {
  UpstreamOptions options{.label = "behind", .open_link = {}};
  options.secrets = std::make_shared<KnownSecrets>(secrets_in_header("X-Api-Key", "12345678"));
  const Upstream upstream(std::move(options));
  const Error told = upstream.explained({-32000, "no", R"({"key":12345678,"n":1234567})"});
  EXPECT_THAT(told.data, HasSubstr(R"({"key":"***","n":1234567})"));
}

TEST(UpstreamTest, MaskingTakesNoTimeForEachStringAndEachByteOfASecret) {
  UpstreamOptions options{.label = "behind", .open_link = {}};
  options.secrets = std::make_shared<KnownSecrets>(
      secrets_in_header("Authorization", "Bearer " + std::string(100'000, 'x')));
  const Upstream upstream(std::move(options));
  std::string data = "[";
  for (int i = 0; i < 500'000; ++i) data.append(R"("xxxxxxx",)");
  EXPECT_EQ(upstream.explained({-32000, "no", data + "0]"}).data.size(),
            upstream.explained({-32000, "no", data + "1]"}).data.size());
}

}  // namespace
}  // namespace sluice

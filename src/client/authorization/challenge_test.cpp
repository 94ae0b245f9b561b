#include "client/authorization/challenge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

TEST(ChallengeTest, ReadsTheExampleOfTheSpecification) {
  const auto all = parse_challenges(
      R"(Bearer error="insufficient_scope", scope="files:read files:write", )"
      R"(resource_metadata="https://mcp.example/m", error_description="say \"please\"")");
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].scheme, "bearer");
  EXPECT_EQ(all[0].parameter("scope"), "files:read files:write");
  EXPECT_EQ(all[0].parameter("error_description"), R"(say "please")");
  EXPECT_EQ(all[0].parameter("realm"), "");
}

TEST(ChallengeTest, ReadsSeveralSchemesInOneField) {
  const auto all =
      parse_challenges(R"(Negotiate YII=, , Basic realm="a, b",DPoP algs="ES256" , Bearer)");
  ASSERT_THAT(all, SizeIs(4));
  EXPECT_EQ(all[0].scheme, "negotiate");
  EXPECT_EQ(all[1].parameter("realm"), "a, b");
  EXPECT_THAT(all[2].parameters, ElementsAre(Pair("algs", "ES256")));
  EXPECT_EQ(all[3].scheme, "bearer");
}

TEST(ChallengeTest, SkipsWhatItCannotRead) {
  EXPECT_THAT(parse_challenges(""), IsEmpty());
  EXPECT_THAT(parse_challenges(R"(=x, a="b", {})"), IsEmpty());
  EXPECT_EQ(parse_challenges(R"(Bearer realm="never ends)")[0].parameter("realm"), "never ends");
  EXPECT_EQ(parse_challenges(R"(Bearer scope = one, SCOPE=two)")[0].parameter("scope"), "one");
  std::string many;
  for (int i = 0; i < 1000; ++i) many.append("S").append(std::to_string(i)).append(" a=b, ");
  EXPECT_THAT(parse_challenges(many), SizeIs(16));
}

TEST(ChallengeTest, JoinsTheFieldsOfAReply) {
  const HeaderField fields[] = {
      {"WWW-Authenticate", R"(Basic realm="x")"},
      {"www-authenticate", R"(Bearer scope="a b")"},
      {"WWW-Authenticate", R"(DPoP error="use_dpop_nonce", scope="b c")"}};
  const ServerChallenge challenge = read_challenge(HeaderFields(fields));
  EXPECT_TRUE(challenge.is_present);
  EXPECT_TRUE(challenge.has_dpop);
  EXPECT_EQ(challenge.error, "use_dpop_nonce");
  EXPECT_THAT(challenge.scopes, ElementsAre("a", "b", "c"));
  const HeaderField other[] = {{"WWW-Authenticate", "Basic"}};
  EXPECT_FALSE(read_challenge(HeaderFields(other)).is_present);
}

TEST(ChallengeTest, ScopesKeepTheirOrder) {
  EXPECT_THAT(split_scopes("  b a b "), ElementsAre("b", "a"));
  std::vector<std::string> scopes = {"a"};
  add_scopes(scopes, {"b", "a"});
  EXPECT_EQ(join_scopes(scopes), "a b");
}

}  // namespace
}  // namespace sluice

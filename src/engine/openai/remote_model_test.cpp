#include "engine/openai/remote_model.hpp"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace sluice {
namespace {

TEST(RemoteModelTexts, HaveNothingOfTheKeyEvenWhereTheyWereCut) {
  const std::vector<std::string> secrets = {"sk-0123456789abcdef"};
  EXPECT_EQ(without_keys("bad sk-0123456789abcdef, bad", secrets), "bad ***, bad");
  EXPECT_EQ(without_keys("bad sk-0123456789abcde...", secrets), "bad ***...");
  EXPECT_EQ(without_keys("bad sk-0... and sk-01234... more", secrets),
            "bad ***... and ***... more");
  EXPECT_EQ(without_keys("wait s... ...", secrets), "wait s... ...") << "that may be any word";
  EXPECT_EQ(without_keys("...", secrets), "...");
  const std::vector<std::string> signs = {"sk/MODEL+KEY=1234"};
  EXPECT_EQ(without_keys(R"(bad sk\/MODEL+KEY=1234, sk%2FMODEL%2BKEY%3D1234)", signs),
            "bad ***, ***");
}

TEST(RemoteModelTexts, HaveNothingOfTheQueryOfTheUrl) {
  const auto base = parse_url("http://model.test/v1?key=SECRETQ3&alt=json");
  ASSERT_TRUE(base);
  const auto secrets = secrets_of(*base, "sk-0123456789abcdef");
  EXPECT_EQ(without_keys("bad sk-0123456789abcdef for /v1/chat?key=SECRETQ3&alt=json", secrets),
            "bad *** for /v1/chat?key=***&alt=json");
}

}  // namespace
}  // namespace sluice

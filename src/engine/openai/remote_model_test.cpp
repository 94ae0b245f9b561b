#include "engine/openai/remote_model.hpp"

#include <gtest/gtest.h>
#include <string>

namespace sluice {
namespace {

TEST(RemoteModelTexts, HaveNothingOfTheKeyEvenWhereTheyWereCut) {
  const HttpHeaderList headers = key_headers("sk-0123456789abcdef");
  EXPECT_EQ(without_key("bad sk-0123456789abcdef, bad", headers), "bad ***, bad");
  EXPECT_EQ(without_key("bad sk-0123456789abcde...", headers), "bad ***...");
  EXPECT_EQ(without_key("bad sk-0... and sk-01234... more", headers), "bad ***... and ***... more");
  EXPECT_EQ(without_key("wait s... ...", headers), "wait s... ...") << "that may be any word";
  EXPECT_EQ(without_key("...", headers), "...");
  const HttpHeaderList signs = key_headers("sk/MODEL+KEY=1234");
  EXPECT_EQ(without_key(R"(bad sk\/MODEL+KEY=1234, sk%2FMODEL%2BKEY%3D1234)", signs),
            "bad ***, ***");
}

}  // namespace
}  // namespace sluice

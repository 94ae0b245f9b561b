#include "auth/api_keys.hpp"

#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

namespace sluice {
namespace {

const ApiKeys& keys() {
  static const ApiKeys keys({{"ann", "secret-1"}, {"bob", "secret-2"}, {"odd", " spaced "}});
  return keys;
}

std::string name_or_none(const std::string* name) {
  return name == nullptr ? "(none)" : *name;
}

TEST(ApiKeys, NameTheirHolders) {
  EXPECT_EQ(name_or_none(keys().name_of("secret-1")), "ann");
  EXPECT_EQ(name_or_none(keys().name_of("secret-2")), "bob");
  for (const std::string_view key :
       {"", "secret", "secret-", "secret-11", "Secret-1", "secret-1 ", "ann"}) {
    EXPECT_EQ(keys().name_of(key), nullptr) << key;
    EXPECT_EQ(ApiKeys({}).name_of(key), nullptr) << key;
  }
  EXPECT_EQ(keys().name_of(std::string_view("secret-1\0", 9)), nullptr);
}

TEST(ApiKeys, AreFoundAmongMany) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (int i = 0; i < 50'000; ++i) {
    pairs.emplace_back("name " + std::to_string(i), "secret-" + std::to_string(i));
  }
  pairs.emplace_back("second", "secret-7");
  const ApiKeys many(pairs);
  // Comparing each with all of them would take minutes.
  for (int i = 0; i < 50'000; ++i) {
    const std::string key = "secret-" + std::to_string(i);
    EXPECT_EQ(name_or_none(many.name_of(key)), i == 7 ? "second" : "name " + std::to_string(i));
    EXPECT_EQ(many.name_of(key + " "), nullptr);
  }
}

TEST(ApiKeys, ComeAsBearerTokens) {
  for (const std::string_view value :
       {"Bearer secret-1", "bearer secret-1", "BEARER secret-1", "Bearer   secret-1"}) {
    EXPECT_EQ(name_or_none(keys().name_of_authorization(value)), "ann") << value;
  }
  for (const std::string_view value : {"", "Bearer", "Bearer ", "Bearersecret-1", "secret-1",
                                       "Basic secret-1", "Bearer secret-3", "Bearer: secret-1"}) {
    EXPECT_EQ(keys().name_of_authorization(value), nullptr) << value;
  }
  EXPECT_EQ(keys().name_of_authorization({}), nullptr);
}

}  // namespace
}  // namespace sluice

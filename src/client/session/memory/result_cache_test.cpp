#include "client/session/memory/result_cache.hpp"

#include <chrono>
#include <gtest/gtest.h>
#include <string>

namespace sluice {
namespace {

using namespace std::chrono_literals;

class ResultCacheTest : public ::testing::Test {
 protected:
  void add(const std::string& method, const json::object& params, const json::value& ttl,
           std::size_t bytes = 100) {
    cache.add(method, params, {{"ttlMs", ttl}, {"of", params}}, bytes, now);
  }
  bool has(const std::string& method, const json::object& params) {
    const auto found = cache.find(method, params, now);
    if (found) EXPECT_EQ(found->at("of"), params);
    return found.has_value();
  }
  ResultCache cache;
  TimePoint now{1h};
};

TEST_F(ResultCacheTest, KeepsAResultForItsTime) {
  add("tools/list", {}, 1000);
  add("tools/list", {{"cursor", "2"}}, 2000);
  EXPECT_TRUE(has("tools/list", {}));
  EXPECT_FALSE(has("prompts/list", {}));
  EXPECT_FALSE(has("tools/list", {{"cursor", "3"}}));
  now += 999ms;
  EXPECT_TRUE(has("tools/list", {}));
  now += 1ms;
  EXPECT_FALSE(has("tools/list", {}));
  EXPECT_TRUE(has("tools/list", {{"cursor", "2"}}));
}

TEST_F(ResultCacheTest, KeepsNothingWithoutATime) {
  for (const json::value& ttl :
       {json::value(0), json::value(-5), json::value("1000"), json::value(nullptr)}) {
    add("tools/list", {}, ttl);
    EXPECT_FALSE(has("tools/list", {})) << to_json(ttl);
  }
  for (const char* const method : {"tools/call", "prompts/get", "server/discover", ""}) {
    EXPECT_FALSE(ResultCache::is_cacheable(method)) << method;
  }
}

TEST_F(ResultCacheTest, NotificationsMakeResultsStale) {
  const auto fill = [this] {
    for (const char* const method :
         {"tools/list", "prompts/list", "resources/list", "resources/templates/list"}) {
      EXPECT_TRUE(ResultCache::is_cacheable(method));
      add(method, {}, 1000);
    }
    add("resources/read", {{"uri", "a://b"}}, 1000);
    add("resources/read", {{"uri", "a://c"}}, 1000);
  };
  const auto left = [this] {
    std::string out;
    if (has("tools/list", {})) out += "t";
    if (has("prompts/list", {})) out += "p";
    if (has("resources/list", {})) out += "r";
    if (has("resources/templates/list", {})) out += "R";
    if (has("resources/read", {{"uri", "a://b"}})) out += "b";
    if (has("resources/read", {{"uri", "a://c"}})) out += "c";
    return out;
  };
  fill();
  cache.on_notification("notifications/tools/list_changed", {});
  EXPECT_EQ(left(), "prRbc");
  fill();
  cache.on_notification("notifications/prompts/list_changed", {});
  EXPECT_EQ(left(), "trRbc");
  fill();
  cache.on_notification("notifications/resources/list_changed", {});
  EXPECT_EQ(left(), "tpbc");
  fill();
  cache.on_notification("notifications/resources/updated", {{"uri", "a://b/part"}});
  EXPECT_EQ(left(), "tprRc");
}

TEST_F(ResultCacheTest, DropsWhatWasUnusedForLongest) {
  const auto uri = [](std::size_t n) { return json::object{{"uri", std::to_string(n)}}; };
  for (std::size_t i = 0; i < ResultCache::kMaxEntries; ++i) add("resources/read", uri(i), 1000);
  EXPECT_TRUE(has("resources/read", uri(0)));
  add("resources/read", uri(ResultCache::kMaxEntries), 1000);
  EXPECT_TRUE(has("resources/read", uri(0)));
  EXPECT_FALSE(has("resources/read", uri(1)));

  add("tools/list", {}, 1000, ResultCache::kMaxBytes);
  EXPECT_TRUE(has("tools/list", {}));
  EXPECT_FALSE(has("resources/read", uri(0)));
  add("tools/list", {}, 1000, ResultCache::kMaxBytes);
  EXPECT_TRUE(has("tools/list", {})) << "it takes the place of itself";
  add("prompts/list", {}, 1000, ResultCache::kMaxBytes + 1);
  EXPECT_FALSE(has("prompts/list", {}));
}

}  // namespace
}  // namespace sluice

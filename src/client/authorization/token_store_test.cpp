#include "client/authorization/token_store.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/stat.h>

#include "client/authorization/file_lock.hpp"
#include "core/file_test_support.hpp"
#include "core/manual_executor.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::SizeIs;

StoredToken some_token(const std::string& issuer, const std::string& access = "t") {
  return {.server = "https://s",
          .issuer = issuer,
          .resource = "https://s",
          .grant = "g",
          .client_id = "c",
          .access_token = access,
          .token_type = "bearer",
          .issued_at = 1,
          .expires_at = 2,
          .refresh_token = "r",
          .scope = "a b",
          .requested_scope = "a",
          .token_endpoint = "https://a/t",
          .revocation_endpoint = "https://a/r",
          .auth_method = "none",
          .dpop_key = "pem"};
}

mode_t mode_of(const std::string& path) {
  struct stat about{};
  EXPECT_EQ(::stat(path.c_str(), &about), 0);
  return about.st_mode & 07777U;
}

TEST(TokenStoreTest, ReadsWhatItWrote) {
  const test::TemporaryDirectory folder;
  TokenStore store(folder.path("deep/er/tokens.json"));
  EXPECT_TRUE(store.load()->tokens.empty());
  StoredCredentials all;
  all.put(some_token("https://a"));
  all.put(StoredClient{.issuer = "https://a",
                       .client_id = "c",
                       .client_secret = "s",
                       .auth_method = "client_secret_post",
                       .redirect_uri = "u",
                       .expires_at = 9});
  ASSERT_TRUE(store.save(all));
  EXPECT_EQ(*store.load(), all);
  EXPECT_EQ(mode_of(store.path()), 0600U);
  EXPECT_EQ(mode_of(folder.path("deep/er")), 0700U);
  // Nothing is left beside it.
  int files = 0;
  for ([[maybe_unused]] const auto& each :
       std::filesystem::directory_iterator(folder.path("deep/er"))) {
    ++files;
  }
  EXPECT_EQ(files, 1);
}

TEST(TokenStoreTest, IsNotReadableByOthersWhateverTheUmask) {
  const test::TemporaryDirectory folder;
  const mode_t before = ::umask(0);
  TokenStore store(folder.path("tokens.json"));
  EXPECT_TRUE(store.save({}));
  ::umask(before);
  EXPECT_EQ(mode_of(store.path()), 0600U);
}

TEST(TokenStoreTest, RefusesAFileThatOthersCanRead) {
  const test::TemporaryDirectory folder;
  TokenStore store(folder.path("tokens.json"));
  ASSERT_TRUE(store.save({}));
  ASSERT_EQ(::chmod(store.path().c_str(), 0640), 0);
  const auto read = store.load();
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("others can read it"));
  EXPECT_THAT(read.error().message, HasSubstr(store.path()));
}

TEST(TokenStoreTest, RefusesWhatIsNoneOfItsFiles) {
  const test::TemporaryDirectory folder;
  const auto reason = [&folder](std::string_view text) {
    const std::string path = folder.path("f");
    std::ofstream(path) << text;
    ::chmod(path.c_str(), 0600);
    const auto read = TokenStore(path).load();
    return read ? std::string() : read.error().message;
  };
  EXPECT_THAT(reason(""), HasSubstr("not a JSON object"));
  EXPECT_THAT(reason("[]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(reason(R"({"version":2})"), HasSubstr("'version'"));
  EXPECT_THAT(reason(R"({"version":1,"tokens":{}})"), HasSubstr("'tokens'"));
  EXPECT_THAT(reason(R"({"version":1,"clients":[7]})"), HasSubstr("'clients'"));
  EXPECT_EQ(reason(R"({"version":1,"new":1,"tokens":[{"issuer":3,"expires_at":"x"}]})"), "");
  EXPECT_THAT(TokenStore(folder.path()).load().error().message, HasSubstr("regular file"));
  std::filesystem::create_directory(folder.path("no"));
  EXPECT_THAT(TokenStore(folder.path("f/under")).save({}).error().message, HasSubstr("f/under"));
}

// A writer that is killed leaves what it was writing, with tokens in it.
TEST(TokenStoreTest, NothingIsLeftOfAWriterThatWasKilled) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.path("tokens.json");
  const std::string other = folder.path("other");
  std::ofstream(other) << "not ours";
  std::filesystem::create_symlink(other, path + ".new");
  StoredCredentials all;
  all.put(some_token("https://a", "1"));
  ASSERT_TRUE(TokenStore(path).save(all));
  EXPECT_EQ(*TokenStore(path).load(), all);
  EXPECT_FALSE(std::filesystem::exists(path + ".new"));
  EXPECT_EQ(std::filesystem::file_size(other), 8U);
}

TEST(TokenStoreTest, KeepsATokenForEachIssuerAndResource) {
  StoredCredentials all;
  all.put(some_token("https://a", "1"));
  all.put(some_token("https://b", "2"));
  all.put(some_token("https://a", "3"));
  ASSERT_THAT(all.tokens, SizeIs(2));
  EXPECT_EQ(all.find("https://s", "g", "")->access_token, "3");
  EXPECT_EQ(all.find("https://s", "g", "other"), nullptr);
  EXPECT_EQ(all.find("https://s/deeper", "g", ""), nullptr);
  EXPECT_EQ(all.find("https://s", "other", ""), nullptr);
  EXPECT_EQ(all.find("https://s", "", "")->access_token, "3");
  for (int i = 0; i < 2000; ++i) all.put(some_token("https://" + std::to_string(i)));
  EXPECT_THAT(all.tokens, SizeIs(StoredCredentials::kMaxTokens));
}

TEST(TokenStoreTest, ForgetsClientsWhoseSecretHasExpired) {
  StoredCredentials all;
  const auto any = [](const StoredClient&) { return true; };
  all.put(StoredClient{.issuer = "https://a", .client_id = "c", .expires_at = 100});
  EXPECT_NE(all.find_client("https://a", 99, any), nullptr);
  EXPECT_EQ(all.find_client("https://a", 100, any), nullptr);
  EXPECT_EQ(all.find_client("https://b", 1, any), nullptr);
}

TEST(TokenStoreTest, KeepsTheClientsThatTokensWereIssuedTo) {
  StoredCredentials all;
  const auto put = [&](const std::string& id, const std::string& uri) {
    all.put(StoredClient{.issuer = "https://a", .client_id = id, .redirect_uri = uri});
  };
  put("one", "http://127.0.0.1:1/callback");
  put("two", "http://127.0.0.1:2/callback");
  put("three", "http://127.0.0.1:2/callback");
  EXPECT_THAT(all.clients, SizeIs(2));
  EXPECT_NE(client_of_token(all, {.issuer = "https://a", .client_id = "one"}, 1), nullptr);
  EXPECT_EQ(client_of_token(all, {.issuer = "https://a", .client_id = "two"}, 1), nullptr);
  EXPECT_EQ(client_of_token(all, {.issuer = "https://b", .client_id = "one"}, 1), nullptr);
  const auto any = [](const StoredClient&) { return true; };
  EXPECT_EQ(all.find_client("https://a", 1, any)->client_id, "three");
}

TEST(FileLockTest, IsHeldByOneAtATime) {
  const test::TemporaryDirectory folder;
  ManualExecutor loop;
  std::vector<FileLock> held;
  std::vector<Error> failed;
  const auto ask = [&](Duration patience) {
    FileLock::acquire(loop, folder.path("new/lock"), patience, [&](Result<FileLock> lock) {
      if (lock) {
        held.push_back(*std::move(lock));
      } else {
        failed.push_back(lock.error());
      }
    });
  };
  ask(1s);
  ask(1s);
  EXPECT_TRUE(held.empty());
  loop.run();
  EXPECT_THAT(held, SizeIs(1));
  loop.advance(2s);
  EXPECT_THAT(held, SizeIs(1));
  ASSERT_THAT(failed, SizeIs(1));
  EXPECT_EQ(failed[0].code, 504);
  ask(1s);
  loop.advance(500ms);
  held.clear();
  loop.advance(100ms);
  EXPECT_THAT(held, SizeIs(1));
  EXPECT_EQ(mode_of(folder.path("new/lock")), 0600U);
}

TEST(FileLockTest, WhoeverWaitsIsToldSoOnce) {
  const test::TemporaryDirectory folder;
  ManualExecutor loop;
  std::vector<FileLock> held;
  const auto keep = [&held](Result<FileLock> lock) {
    if (lock) held.push_back(*std::move(lock));
  };
  FileLock::acquire(loop, folder.path("lock"), 10s, keep);
  loop.run();
  FileLock::acquire(loop, folder.path("lock"), 10s, keep);
  ::testing::internal::CaptureStderr();
  loop.advance(900ms);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  ::testing::internal::CaptureStderr();
  loop.advance(3s);
  const std::string logged = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(logged, HasSubstr("another process logs in or renews a token"));
  EXPECT_EQ(std::ranges::count(logged, '\n'), 1) << logged;
}

TEST(FileLockTest, SaysWhyItCannotBeHad) {
  const test::TemporaryFile file("plain", "x");
  ManualExecutor loop;
  std::string why;
  FileLock::acquire(loop, file.path() + "/lock", 1s,
                    [&](const Result<FileLock>& lock) { why = lock.error().message; });
  loop.run();
  EXPECT_THAT(why, HasSubstr("plain/lock"));
}

}  // namespace
}  // namespace sluice

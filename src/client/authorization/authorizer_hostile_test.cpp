// What servers, pages in the browser and full disks do to a login.

#include <chrono>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "client/authorization/authorization_test_support.hpp"
#include "core/file_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

class HostileAuthorizerTest : public AuthorizationTest {};

// Any page that the user has open can send such requests.
TEST_F(HostileAuthorizerTest, RequestsOfOthersDoNotEndALogin) {
  logs_in = false;
  const auto outcome = refuse("Bearer");
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(redirect("error=access_denied&state=" + std::to_string(i)),
              RedirectVerdict::not_of_it);
  }
  loop.run();
  EXPECT_EQ(log_in(), RedirectVerdict::accepted);
  loop.run();
  EXPECT_EQ(token(), "Bearer t1");
}

// Users copy what they are told to run.
TEST_F(HostileAuthorizerTest, TheScopesOfAServerAreNoCommands) {
  ASSERT_TRUE(refuse("Bearer").value());
  context->options.on_prompt = {};
  made = nullptr;
  const auto outcome = refuse(R"(Bearer error="insufficient_scope", scope="$(id) a'b")", 403);
  EXPECT_THAT(outcome->error().message,
              HasSubstr(R"(`sluice login https://mcp.example/mcp --scope '$(id) a'\''b'`)"));
}

TEST_F(HostileAuthorizerTest, TheQueryOfAServerIsNotShown) {
  context->server = *parse_url("https://mcp.example/mcp/?key=secret");
  context->options.on_prompt = {};
  EXPECT_EQ(refuse("Bearer")->error().message,
            "The server https://mcp.example/mcp asks for authorization: run `sluice login "
            "https://mcp.example/mcp/`");
}

TEST_F(HostileAuthorizerTest, ALockThatCannotBeHadIsNotAllThatIsSaid) {
  const test::TemporaryFile file("plain", "x");
  context->store = std::make_shared<TokenStore>(file.path() + "/tokens.json");
  EXPECT_THAT(refuse("Bearer")->error().message,
              AllOf(HasSubstr("mcp.example/mcp asks for authorization"), HasSubstr(file.path())));
}

// Its secret is gone if the next login, on another port, puts its own client in place of it.
TEST_F(HostileAuthorizerTest, ATokenIsRenewedByTheClientThatItWasIssuedTo) {
  server["token_endpoint_auth_methods_supported"] = json::array{"client_secret_post"};
  publish();
  const auto register_as = [&](const std::string& name) {
    replies["https://auth.example/register"] = {
        .status = 201,
        .body = to_json(json::object{{"client_id", name}, {"client_secret", "secret of " + name}}),
        .dpop_nonce = {}};
  };
  register_as("one");
  ASSERT_TRUE(refuse("Bearer").value());
  register_as("two");
  taken_port = parse_url(context->store->load()->clients.front().redirect_uri)->port;
  std::optional<Result<void>> outcome;
  authorizer().login({}, [&](Result<void> result) { outcome = std::move(result); });
  loop.run();
  ASSERT_TRUE(outcome && *outcome);
  ASSERT_EQ(context->store->load()->clients.size(), 2U);
  // The first token is of another server that has the same authorization server.
  StoredCredentials stored = *context->store->load();
  stored.tokens.pop_back();
  ASSERT_TRUE(context->store->save(stored));
  made = nullptr;
  pass(3601s);
  grant("t2", "r2");
  token();
  loop.run();
  EXPECT_EQ(field_of(token_requests().back(), "client_secret"), "secret of one");
  EXPECT_EQ(token(), "Bearer t2");
}

TEST_F(HostileAuthorizerTest, ALoginThatCannotBeKeptFails) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.path("tokens.json");
  context->store = std::make_shared<TokenStore>(path);
  context->options.client_id = "known";
  // Nothing can be written where a folder is.
  std::filesystem::create_directories(path + ".new/in the way");
  std::optional<Result<void>> outcome;
  authorizer().login({}, [&](Result<void> result) { outcome = std::move(result); });
  const auto is_over = [&] { return outcome.has_value(); };
  for (int i = 0; i < 100 && !is_over(); ++i) loop.advance(1s);
  ASSERT_TRUE(is_over());
  ASSERT_FALSE(*outcome);
  EXPECT_THAT(outcome->error().message, HasSubstr(path));
}

}  // namespace
}  // namespace sluice

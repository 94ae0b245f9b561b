// Processes that share a token file, with a real authorization server on a socket.

#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "client/authorization/authorizer.hpp"
#include "core/file_test_support.hpp"
#include "net/server/server_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;

class AuthorizerProcessesTest : public ServerTest {
 protected:
  /// A process that wakes, sends one request's authorization to the exit code, and ends: 0 if the
  /// request gets the new token.
  pid_t wake(const std::string& file) const {
    const pid_t child = ::fork();
    if (child != 0) return child;
    int code = 2;
    {
      EventLoop own;
      AuthorizationOptions with;
      with.token_file = file;
      const auto authorizer = make_authorizer(own, place("/mcp"), with, nullptr);
      authorizer->authorize("POST", place("/mcp"), [&](Result<RequestAuthorization> made) {
        code = made && !made->headers.empty() && made->headers[0].second == "Bearer new" ? 0 : 1;
        own.stop();
      });
      if (code == 2) own.run();
    }
    ::_exit(code);
  }
  [[nodiscard]] Url place(const std::string& target) const {
    return {.scheme = "http", .host = "127.0.0.1", .port = port, .target = target};
  }
};

// mcp-remote#351, claude-code#85236, LibreChat#15977: the refresh token is spent twice, and the
// authorization server, which detects that, revokes all.
TEST_F(AuthorizerProcessesTest, TwentyThatWakeWithOneExpiredTokenRefreshOnce) {
  int refreshes = 0;
  handle = [&](const HttpRequest& request, HttpExchangePtr exchange) {
    const bool is_first = request.body.contains("refresh_token=r1") && refreshes++ == 0;
    exchange->reply(is_first ? 200 : 400, "application/json",
                    is_first ? R"({"access_token":"new","token_type":"Bearer","expires_in":3600,)"
                               R"("refresh_token":"r2"})"
                             : R"({"error":"invalid_grant"})");
  };
  start();
  const test::TemporaryDirectory folder;
  const std::string file = folder.path("tokens.json");
  StoredCredentials all;
  all.put(StoredToken{.server = canonical_resource(place("/mcp")),
                      .issuer = "http://127.0.0.1",
                      .resource = canonical_resource(place("/mcp")),
                      .grant = "authorization_code",
                      .client_id = "c",
                      .access_token = "old",
                      .token_type = "bearer",
                      .issued_at = 1,
                      .expires_at = 3601,
                      .refresh_token = "r1",
                      .token_endpoint = place("/token").to_string(),
                      .auth_method = "none"});
  ASSERT_TRUE(TokenStore(file).save(all));
  std::vector<pid_t> children;
  for (int i = 0; i < 20; ++i) children.push_back(wake(file));
  std::vector<int> codes;
  ASSERT_TRUE(until([&] {
    std::erase_if(children, [&codes](pid_t child) {
      int status = 0;
      if (::waitpid(child, &status, WNOHANG) != child) return false;
      codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
      return true;
    });
    return children.empty();
  }));
  EXPECT_THAT(codes, Each(0));
  EXPECT_EQ(refreshes, 1);
  EXPECT_EQ(TokenStore(file).load()->tokens.at(0).refresh_token, "r2");
}

}  // namespace
}  // namespace sluice

#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/authorization/authorizer.hpp"
#include "core/manual_executor.hpp"
#include "json/json.hpp"

namespace sluice {

/// The requests of authorization, which a test answers.
class FakeOauthHttp final : public OauthHttp {
 public:
  explicit FakeOauthHttp(Executor& loop) : loop_(&loop) {}

  void send(OauthRequest request, Done done) override {
    asked.push_back(request);
    loop_->post([this, request = std::move(request), done = std::move(done)] {
      if (std::optional<Result<OauthReply>> reply = answer(request)) {
        done(*std::move(reply));
      } else {
        held.push_back(done);
      }
    });
  }

  /// Answers a request; nothing: later, by way of `held`.
  std::function<std::optional<Result<OauthReply>>(const OauthRequest&)> answer;
  std::vector<OauthRequest> asked;
  std::deque<Done> held;

 private:
  Executor* loop_;
};

/// A redirect URI without a socket.
struct FakeReceiver final : RedirectReceiver {
  [[nodiscard]] const std::string& redirect_uri() const override { return uri; }
  std::string uri;
};

/// An MCP server at https://mcp.example/mcp with an authorization server at https://auth.example,
/// as far as a client sees them, on the manual executor. The tests change what the two say.
class AuthorizationTest : public ::testing::Test {
 protected:
  AuthorizationTest() {
    context->loop = &loop;
    http = std::make_shared<FakeOauthHttp>(loop);
    http->answer = [this](const OauthRequest& request) { return serve(request); };
    context->http = http;
    context->store = std::make_shared<TokenStore>("");
    context->server = *parse_url("https://mcp.example/mcp");
    context->time_of_day = [this] { return time; };
    context->listen = [this](std::uint16_t port,
                             OnRedirect on_redirect) -> Result<std::unique_ptr<RedirectReceiver>> {
      ports.push_back(port);
      if (taken_port != 0 && port == taken_port) return fail(500, "the port is in use");
      redirect = std::move(on_redirect);
      auto receiver = std::make_unique<FakeReceiver>();
      receiver->uri = "http://127.0.0.1:" + std::to_string(port == 0 ? 4000 + ports.size() : port) +
                      "/callback";
      return receiver;
    };
    context->options.on_prompt = [this](const LoginPrompt& prompt) {
      prompts.push_back(prompt);
      if (logs_in) loop.post([this] { log_in(); });
    };
    set("https://mcp.example/.well-known/oauth-protected-resource/mcp",
        {{"resource", "https://mcp.example/mcp"},
         {"authorization_servers", json::array{"https://auth.example"}}});
    server = {{"issuer", "https://auth.example"},
              {"authorization_endpoint", "https://auth.example/authorize"},
              {"token_endpoint", "https://auth.example/token"},
              {"registration_endpoint", "https://auth.example/register"},
              {"code_challenge_methods_supported", json::array{"S256"}},
              {"token_endpoint_auth_methods_supported", json::array{"none"}}};
    publish();
    replies["https://auth.example/register"] = {
        .status = 201, .body = R"({"client_id":"registered"})", .dpop_nonce = {}};
    grant("t1", "r1");
  }

  void set(const std::string& url, const json::object& document) {
    replies[url] = {.status = 200, .body = to_json(document), .dpop_nonce = {}};
  }
  /// Makes the changes to `server` known.
  void publish() { set("https://auth.example/.well-known/oauth-authorization-server", server); }
  /// What the token endpoint answers from now on.
  void grant(const std::string& access, const std::string& refresh = {}, int seconds = 3600,
             const std::string& scope = {}) {
    json::object reply = {
        {"access_token", access}, {"token_type", "Bearer"}, {"expires_in", seconds}};
    if (!refresh.empty()) reply["refresh_token"] = refresh;
    if (!scope.empty()) reply["scope"] = scope;
    set("https://auth.example/token", reply);
  }
  void refuse_token(const std::string& error, int status = 400) {
    replies["https://auth.example/token"] = {
        .status = status, .body = to_json(json::object{{"error", error}}), .dpop_nonce = {}};
  }
  std::optional<Result<OauthReply>> serve(const OauthRequest& request) {
    const auto found = replies.find(request.url);
    if (found == replies.end()) return OauthReply{.status = 404, .body = {}, .dpop_nonce = {}};
    if (found->second.status == 0) return std::nullopt;
    return found->second;
  }

  /// The parameters of the last authorization request.
  [[nodiscard]] FormFields authorization_request() const {
    const std::string& url = prompts.back().url;
    return parse_form(std::string_view(url).substr(url.find('?') + 1));
  }
  RedirectVerdict log_in(FormFields more = {}) {
    FormFields fields = {{"code", "c1"},
                         {"state", std::string(field_of(authorization_request(), "state"))}};
    fields.insert(fields.end(), more.begin(), more.end());
    return redirect(to_form(fields));
  }

  Authorizer& authorizer() {
    if (made == nullptr) made = std::make_shared<Authorizer>(context);
    return *made;
  }
  /// The value of Authorization that a request gets now; empty if it must wait.
  std::string token(const std::string& url = "https://mcp.example/mcp") {
    std::string out;
    authorizer().authorize("POST", *parse_url(url), [&](Result<RequestAuthorization> result) {
      last = result;
      if (result && !result->headers.empty()) out = result->headers.front().second;
    });
    return out;
  }
  /// A server refuses a request; returns what becomes of that. Nothing: it still waits.
  std::optional<Result<void>> refuse(const std::string& challenge, int status = 401,
                                     std::string_view nonce = {}) {
    const auto outcome = std::make_shared<std::optional<Result<void>>>();
    const HeaderField fields[] = {{"WWW-Authenticate", challenge}, {"DPoP-Nonce", nonce}};
    const HttpReplyHead head{.status = status,
                             .headers = std::span(fields, nonce.empty() ? 1U : 2U)};
    token();
    const std::uint64_t credential = last && *last ? (*last)->credential : 0;
    authorizer().on_reply(head);
    is_handled = authorizer().on_refused(
        head, credential, [outcome](Result<void> result) { *outcome = std::move(result); });
    loop.run();
    return *outcome;
  }
  /// The forms that were posted to the token endpoint.
  [[nodiscard]] std::vector<FormFields> token_requests() const {
    std::vector<FormFields> out;
    for (const OauthRequest& request : http->asked) {
      if (request.url == "https://auth.example/token") out.push_back(parse_form(request.body));
    }
    return out;
  }
  [[nodiscard]] std::vector<std::string> asked() const {
    std::vector<std::string> out;
    for (const OauthRequest& request : http->asked)
      out.push_back(request.method + " " + request.url);
    return out;
  }
  void pass(std::chrono::seconds by) {
    time += by;
    loop.advance(by);
  }

  ManualExecutor loop;
  WallTime time = WallTime(std::chrono::seconds(1'800'000'000));
  std::shared_ptr<AuthorizationContext> context = std::make_shared<AuthorizationContext>();
  std::shared_ptr<FakeOauthHttp> http;
  std::map<std::string, OauthReply> replies;  // by URL; status 0: held
  json::object server;
  bool logs_in = true;  // the user does, when prompted
  std::uint16_t taken_port = 0;
  std::vector<LoginPrompt> prompts;
  std::vector<std::uint16_t> ports;
  OnRedirect redirect;
  std::shared_ptr<Authorizer> made;
  std::optional<Result<RequestAuthorization>> last;
  bool is_handled = false;
};

}  // namespace sluice

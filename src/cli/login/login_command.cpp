#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cli/login/authorization_flags.hpp"
#include "cli/login/browser.hpp"
#include "cli/options/command.hpp"
#include "cli/options/command_line.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/terminal/traffic_text.hpp"
#include "client/authorization/challenge.hpp"
#include "client/authorization/discovery.hpp"
#include "client/authorization/guarded_http.hpp"
#include "client/link/traced_link.hpp"
#include "core/text/secrets.hpp"
#include "json/json.hpp"
#include "net/client/http_client.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {
namespace {

struct LoginArguments {
  std::string url;
  AuthorizationFlags authorization;
  std::string ca_file;
  bool insecure = false;
  bool no_browser = false;
  bool as_json = false;
  bool is_verbose = false;
};

constexpr const char* kLoginExamples =
    "Examples:\n"
    "  sluice login https://mcp.example.com/mcp\n"
    "  sluice login https://mcp.example.com/mcp --scope files:read --scope files:write\n"
    "  sluice login https://mcp.example.com/mcp --client-id my-app --redirect-port 8765\n"
    "  sluice login https://mcp.example.com/mcp --grant device-code   # no browser here\n"
    "\n"
    "A browser opens on a desktop; elsewhere the URL is printed, and a browser of this machine "
    "must\n"
    "open it. The tokens are kept in a file that only you can read, and every command uses them.\n";
constexpr const char* kLogoutExamples =
    "Examples:\n"
    "  sluice logout https://mcp.example.com/mcp\n"
    "  sluice logout https://mcp.example.com/mcp --json\n"
    "\n"
    "Forgets the tokens for this server, and asks the authorization server to end them.\n";

/// One command: its loop, and what runs on it until the outcome is known.
class LoginRun {
 public:
  ~LoginRun() {
    call_.drop();
    authorizer_ = nullptr;
    discovery_ = nullptr;
    loop_.discard_tasks();
  }
  LoginRun() = default;
  LoginRun(const LoginRun&) = delete;
  LoginRun& operator=(const LoginRun&) = delete;

  /// Error: kExitUsage.
  Result<void> prepare(const LoginArguments& arguments) {
    if (arguments.url.empty()) {
      return fail(kExitUsage,
                  "the URL of the server is missing, such as https://mcp.example.com/mcp");
    }
    Result<Url> url = parse_url(arguments.url);
    if (!url) return fail(kExitUsage, url.error().message);
    server_ = *std::move(url);
    server_.scheme = server_.is_tls() ? "https" : "http";
    auto tls = TlsContext::client({.ca_file = arguments.ca_file, .insecure = arguments.insecure});
    if (!tls) return fail(kExitUsage, tls.error().message);
    tls_ = *std::move(tls);
    proxies_ = environment_proxies();
    if (const auto proxy = proxies_->proxy_for(server_); !proxy) {
      return fail(kExitUsage, proxy.error().message);
    }
    if (arguments.is_verbose)
      tap_ = http_tap(traffic_printer(),
                      std::make_shared<KnownSecrets>(secrets_in_url(arguments.url)));
    auto made = make_authorizer_of(
        loop_, server_, arguments.authorization, tls_, proxies_,
        [may_open = !arguments.no_browser](const LoginPrompt& prompt) {
          show_login(prompt, may_open);
        },
        tap_);
    if (!made) return std::unexpected(made.error());
    authorizer_ = *std::move(made);
    return {};
  }

  /// Logs in. The token, or nothing if the server asks for no authorization.
  Result<std::optional<StoredToken>> log_in() {
    ask_without_token();
    loop_.run();
    if (!outcome_) return std::unexpected(outcome_.error());
    return authorizer_->token();
  }
  /// How many tokens there were.
  Result<std::size_t> log_out() {
    std::size_t count = 0;
    authorizer_->logout([&](Result<std::size_t> ended) {
      if (ended) count = *ended;
      finish(ended ? Result<void>() : std::unexpected(ended.error()));
    });
    loop_.run();
    if (!outcome_) return std::unexpected(outcome_.error());
    return count;
  }

 private:
  /// The refusal says where the metadata is, and which scopes are needed. Any request would do;
  /// this one changes nothing, at servers of any era.
  void ask_without_token() {
    discovery_ = std::make_shared<GuardedHttp>(
        loop_,
        GuardedHttpOptions{.server = server_, .tls = tls_, .proxies = proxies_, .tap = tap_});
    HttpClientOptions options{.proxies = proxies_, .tls = tls_, .tap = tap_};
    options.may_connect = [this](const Endpoint& endpoint) {
      authorizer_->on_address(endpoint);
      discovery_->server_is_at(endpoint);
      return true;
    };
    client_.emplace(loop_, std::move(options));
    call_ = client_->send(
        {.method = "POST",
         .url = server_,
         .headers = {{"Content-Type", "application/json"},
                     {"Accept", "application/json, text/event-stream"},
                     {"MCP-Protocol-Version", "2026-07-28"},
                     {"Mcp-Method", "server/discover"}},
         .body = R"({"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}})"},
        {.on_head = [this](const HttpReplyHead& head) { on_first_reply(head); },
         .on_failure = [this](const Error& why) { finish(std::unexpected(why)); }});
  }
  void on_first_reply(const HttpReplyHead& head) {
    ServerChallenge challenge = read_challenge(head.headers);
    call_.drop();
    if (head.status == kUnauthorized) return log_in_with(std::move(challenge));
    // Some servers ask for authorization only later, for some of their methods.
    find_resource_metadata(discovery_, server_, {}, [this](const Result<ResourceMetadata>& found) {
      if (!found) return finish(std::unexpected(found.error()));
      if (found->is_assumed) return finish({});
      log_in_with({});
    });
  }
  void log_in_with(ServerChallenge challenge) {
    authorizer_->login(std::move(challenge),
                       [this](Result<void> result) { finish(std::move(result)); });
  }
  void finish(Result<void> outcome) {
    outcome_ = std::move(outcome);
    loop_.stop();
  }

  EventLoop loop_;
  Url server_;
  std::shared_ptr<TlsContext> tls_;
  std::shared_ptr<const ProxySettings> proxies_;
  HttpTap tap_;
  std::shared_ptr<Authorizer> authorizer_;
  std::optional<HttpClient> client_;
  HttpClient::Call call_;
  std::shared_ptr<GuardedHttp> discovery_;
  Result<void> outcome_;
};

int complain_of(const Error& error) {
  complain(error.message);
  return exit_code_of(error);
}

int print_login(const LoginArguments& arguments, const StoredToken& token) {
  if (arguments.as_json) {
    json::object out = {{"url", masked_url(arguments.url)},
                        {"issuer", token.issuer},
                        {"resource", token.resource},
                        {"client_id", token.client_id},
                        {"scope", token.scope},
                        {"can_refresh", !token.refresh_token.empty()}};
    if (token.expires_at != 0) out["expires_at"] = token.expires_at;
    return print(to_json(out) + "\n");
  }
  std::string text =
      "Logged in to " + one_line(masked_url(arguments.url)) + " by " + one_line(token.issuer);
  if (!token.scope.empty()) text.append(", with the scopes ").append(one_line(token.scope));
  return print(text + "\n");
}

int run_login(const LoginArguments& arguments) {
  LoginRun run;
  if (const Result<void> prepared = run.prepare(arguments); !prepared) {
    complain(prepared.error().message);
    return prepared.error().code;
  }
  const Result<std::optional<StoredToken>> token = run.log_in();
  if (!token) return complain_of(token.error());
  if (*token) return print_login(arguments, **token);
  if (arguments.as_json)
    return print(to_json(json::object{{"url", masked_url(arguments.url)}}) + "\n");
  return print(one_line(masked_url(arguments.url)) + " asks for no authorization\n");
}

int run_logout(const LoginArguments& arguments) {
  LoginRun run;
  if (const Result<void> prepared = run.prepare(arguments); !prepared) {
    complain(prepared.error().message);
    return prepared.error().code;
  }
  const Result<std::size_t> count = run.log_out();
  if (!count) return complain_of(count.error());
  if (arguments.as_json) {
    return print(to_json(json::object{{"url", masked_url(arguments.url)}, {"tokens", *count}}) +
                 "\n");
  }
  return print((*count == 0 ? "There was no token for " : "Logged out of ") +
               one_line(masked_url(arguments.url)) + "\n");
}

void add_shared_options(Subcommand& command, LoginArguments& arguments) {
  command.add_option("url", &arguments.url,
                     {.text = "Address of the MCP server", .operand = "URL"});
  command.add_flag("--json", arguments.as_json, {.text = "Print the outcome as JSON"});
  command.add_flag("-v,--verbose", arguments.is_verbose,
                   {.text = "Show the requests on standard error, without secrets"});
  command.add_option("--ca", &arguments.ca_file,
                     {.text = "Trust certificates that are signed by the ones in this file (PEM)",
                      .operand = "FILE",
                      .group = "Connection"});
  command.add_flag(
      "--insecure", arguments.insecure,
      {.text = "Trust any certificate; only for tests on this machine", .group = "Connection"});
}

}  // namespace

void add_login_command(CommandLine& program) {
  const auto arguments = std::make_shared<LoginArguments>();
  Subcommand command =
      program.add_subcommand("login", "Log in to an MCP server, so that other commands may use it",
                             kLoginExamples, [arguments] { return run_login(*arguments); });
  add_shared_options(command, *arguments);
  command.add_flag("--no-browser", arguments->no_browser,
                   {.text = "Print the URL, and open no browser"});
  add_authorization_options(command, arguments->authorization);
}

void add_logout_command(CommandLine& program) {
  const auto arguments = std::make_shared<LoginArguments>();
  Subcommand command =
      program.add_subcommand("logout", "Forget the tokens for an MCP server, and end them",
                             kLogoutExamples, [arguments] { return run_logout(*arguments); });
  add_shared_options(command, *arguments);
  command.add_option("--token-file", &arguments->authorization.token_file,
                     {.text = "Where tokens are kept. Default SLUICE_TOKEN_FILE, or "
                              "$XDG_STATE_HOME/sluice/tokens.json",
                      .operand = "FILE"});
}

}  // namespace sluice

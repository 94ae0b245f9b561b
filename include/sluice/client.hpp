#pragma once

// A client of MCP servers, of whichever revision and transport.
//
//   sluice::Client client = sluice::connect("http://127.0.0.1:8080/mcp");
//   int five = client.call<Total>("add", Numbers{.a = 2, .b = 3}).result().sum;
//
//   auto call = client.call("count", {{"to", 10}});
//   while (auto event = call.next()) std::cout << event->message;  // while the tool runs
//   std::cout << call.result().text();
//
// Functions that wait block the calling thread. A handler of a server must not do that: there,
// `co_await call.result(loop)` and `co_await call.next(loop)` wait without a thread. Everything
// here throws Error where it fails:
//   401, 403            the server wants credentials, or does not take those it got
//   502                 there is no connection, or it broke
//   another HTTP code   the server's answer, if it is no message of MCP
//   kTimedOut           no answer in time
//   kLimitReached       too much at once; see ClientOptions and CallOptions
//   any other code      the server's JSON-RPC error

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/call_event.hpp"
#include "sluice/client_authorization.hpp"
#include "sluice/client_info.hpp"
#include "sluice/content.hpp"
#include "sluice/detail/client_call.hpp"
#include "sluice/detail/duration.hpp"
#include "sluice/error.hpp"
#include "sluice/json.hpp"
#include "sluice/request_loop.hpp"
#include "sluice/schema.hpp"

namespace sluice {

class Server;

/// A program that is a server on its standard input and output (MCP, stdio).
struct ServerCommand {
  /// The program, which is searched for in PATH if it has no slash, and its arguments.
  std::vector<std::string> arguments;
  /// Variables besides those of this process, or in place of them.
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::string directory = {};    // where it runs; empty: where this process does
  bool discards_errors = false;  // what it writes to standard error; else that goes to ours
};

/// Answers a question of the server: gets its `params`, returns the result, or throws Error.
using ClientAnswer = std::function<json::object(const json::object& params)>;

/// What a server at an http or https URL speaks. `any`: Streamable HTTP is tried first, and HTTP
/// with SSE (2024-11-05) if the server has only that.
enum class HttpTransport : std::uint8_t { any, streamable, sse };

/// Something that passes between a client and its server: a message, or with HTTP the head of a
/// request or a reply, also of those that authorization takes. Views are valid during the call.
struct Traffic {
  bool is_sent = false;             // by the client
  std::string_view transport = {};  // "http", "websocket", "stdio" or "unix"
  /// JSON-RPC as it was sent, or whatever the server has sent in its place. It may have secrets in
  /// it. Empty: this is a head.
  std::string_view message = {};
  /// Of a head: the method and the URL, or the status. What may be secret in the URL is `***`.
  std::string start = {};
  /// Of a head. What authorizes the request is `***`, and the id of a session is cut.
  std::vector<std::pair<std::string, std::string>> headers = {};
};
/// Is shown traffic as it passes, on the thread of all clients: it must neither wait nor use a
/// client. What it throws is logged.
using OnTraffic = std::function<void(const Traffic&)>;

struct ClientOptions {
  ClientInfo info = {.name = "sluice", .version = "0"};
  /// The revision to speak, such as "2025-11-25". Empty: the newest that the server speaks, which
  /// is found out first. A server of "2026-07-28" is not asked anything then, so connect() does not
  /// notice if there is none, and about() is empty.
  std::string revision = {};
  HttpTransport http_transport = HttpTransport::any;
  /// HTTP header fields for every request, such as Authorization. They go to this server only.
  /// Accept, Content-Type and those of MCP are left out, which the client writes itself. Those that
  /// frame requests, such as Host and Content-Length, are Error 400.
  std::vector<std::pair<std::string, std::string>> headers = {};
  /// How to be authorized, where the server wants that. Empty: `headers` have all it needs. Only
  /// for http, https, ws and wss.
  std::optional<AuthorizationOptions> authorization = {};
  /// PEM file with the certificate authorities to trust. Empty: the system's, or SSL_CERT_FILE.
  std::string ca_file = {};

  // The client declares that it can be asked what has an answer here. These functions run on a
  // thread of the client's own, one at a time, and may block. A question that the server takes back
  // before its turn comes is not asked.

  /// elicitation/create, both modes. What an accepted form leaves out gets its default.
  ClientAnswer on_elicitation = {};
  ClientAnswer on_sampling = {};  // sampling/createMessage
  ClientAnswer on_roots = {};     // roots/list
  /// Is told of notifications that belong to no call. If more than kMaxNotifications or
  /// kMaxNotificationBytes wait to be told, the oldest are dropped, which is logged.
  std::function<void(std::string_view method, const json::object& params)> on_notification = {};
  /// Is told that the server had forgotten the session, and that there is a new one. What the
  /// server kept for the old one is lost: subscriptions, the log level, what calls stored.
  std::function<void()> on_renewed = {};
  OnTraffic on_traffic = {};  // for logs and debugging

  /// Further members of the client's capabilities, such as `extensions`.
  json::object capabilities = {};
  /// A server that is silent on the first question is taken for a legacy one after this. 0: never.
  std::chrono::nanoseconds probe_timeout = std::chrono::seconds(5);
  std::chrono::nanoseconds connect_timeout = std::chrono::seconds(30);  // 0: no limit
  /// Without an answer or progress for so long, a request is given up and the server told, unless
  /// its CallOptions say otherwise. 0: no limit.
  std::chrono::nanoseconds idle_timeout = std::chrono::seconds(60);
  std::size_t max_requests = 1000;  // unanswered; further ones fail with kLimitReached
  /// The most rounds of one request in which the server asks for input (MRTR).
  int max_rounds = 10;

  static constexpr std::size_t kMaxNotifications = 10'000;
  static constexpr std::size_t kMaxNotificationBytes = std::size_t{64} << 20U;  // of memory
};

struct CallOptions {
  std::optional<std::chrono::nanoseconds> idle_timeout = {};  // in place of the client's; 0: none
  std::chrono::nanoseconds timeout = {};                      // in total; 0: no limit
  std::stop_token stop = {};                                  // cancels the call
  json::object meta = {};                                     // further members of `_meta`
  /// Events that wait for next(). If there are more, or they take more than kMaxEventBytes, the
  /// oldest are dropped; see CallEvent.
  std::size_t max_events = 10'000;

  static constexpr std::size_t kMaxEventBytes = std::size_t{64} << 20U;  // of memory
};

/// The result of a tool (CallToolResult).
struct ToolReply {
  json::object result = {};

  /// Whether the tool says that it failed.
  bool is_error() const;
  /// The text of its content, the blocks separated by line breaks.
  std::string text() const;
  /// `structuredContent`; null if there is none.
  const json::value& structured() const;
  /// `structuredContent` as a `T`. Throws ToolError with the text if the tool has failed, and Error
  /// -32602 if it does not fit.
  template <class T>
  T as() const {
    auto decoded = decode<T>(checked(), "structuredContent", UnknownMembers::ignore);
    if (!decoded) throw_unfit(decoded.error());
    return *std::move(decoded);
  }

 private:
  const json::value& checked() const;
  [[noreturn]] static void throw_unfit(const DecodeError& error);
};

/// A request that has been sent. Out is ToolReply, json::object (the JSON-RPC result), or what
/// `structuredContent` is to be decoded to. Destroying it cancels the request. Thread-safe, but
/// only one thread or coroutine at a time may wait for events, and one for the result.
template <class Out>
class [[nodiscard]] PendingCall {
 public:
  explicit PendingCall(detail::ClientCall call) : call_(std::move(call)) {}

  /// Waits for the next event. Nothing: the answer has come, and there are no further events.
  std::optional<CallEvent> next() { return call_.next(); }
  /// Waits for the answer and returns it; events need not be taken. Call at most once.
  Out result() { return to_out(call_.result()); }
  /// Whether result() would return at once.
  bool is_ready() const { return call_.is_ready(); }
  /// Gives the request up, and tells the server. result() then throws Error kCancelled.
  void cancel() { call_.cancel(); }

  // The same for a coroutine of a handler or a middleware, whose loop goes on meanwhile. The call
  // must outlive the wait.

  Task<std::optional<CallEvent>> next(RequestLoop& loop) {
    using Event = std::optional<CallEvent>;
    co_return co_await loop.callback<Event>([this](Resolver<Event> resolver) {
      call_.on_next([resolver](Event event) mutable { resolver.succeed(std::move(event)); });
    });
  }
  Task<Out> result(RequestLoop& loop) {
    co_return to_out(co_await loop.callback<json::object>([this](Resolver<json::object> resolver) {
      call_.on_result([resolver](detail::ClientCall::Outcome outcome) mutable {
        if (outcome) {
          resolver.succeed(*std::move(outcome));
        } else {
          resolver.fail(std::make_exception_ptr(std::move(outcome.error())));
        }
      });
    }));
  }

 private:
  static Out to_out(json::object result) {
    if constexpr (std::is_same_v<Out, json::object>) {
      return result;
    } else if constexpr (std::is_same_v<Out, ToolReply>) {
      return ToolReply{.result = std::move(result)};
    } else {
      return ToolReply{.result = std::move(result)}.template as<Out>();
    }
  }

  detail::ClientCall call_;
};

/// A tool, resource, resource template or prompt, as a server lists it.
struct Listed {
  std::string name = {};  // of a resource template too; how a tool or prompt is called
  std::string title = {};
  std::string description = {};
  json::object definition = {};  // all of it: `inputSchema`, `uri`, `arguments`, ...
};

/// A connection to a server. Copies are handles of the same connection, which ends with the last of
/// them and of its calls: a child process is ended in an orderly way, a session over HTTP too.
/// Thread-safe. It stays with the process that has connected: one that is forked off gets Error 502
/// for what it asks, and can connect anew.
class Client {
 public:
  /// Also connect(). `definition` is served in memory: nothing passes through the kernel.
  explicit Client(std::shared_ptr<detail::ClientConnection> connection)
      : connection_(std::move(connection)) {}

  /// The revision that is spoken, such as "2026-07-28".
  std::string_view revision() const;
  /// What the server said about itself: the result of `initialize` or `server/discover`.
  const json::object& about() const;
  /// How the server wants to be used; may be empty.
  std::string_view instructions() const;

  /// Calls a tool. `arguments` is a json::object or a struct (sluice/schema.hpp).
  template <class Out = ToolReply, class In = json::object>
  PendingCall<Out> call(std::string_view tool, const In& arguments, CallOptions options = {}) {
    return PendingCall<Out>(begin_call(tool, to_arguments(arguments), std::move(options)));
  }
  template <class Out = ToolReply>
  PendingCall<Out> call(std::string_view tool, json::object arguments = {},
                        CallOptions options = {}) {
    return PendingCall<Out>(begin_call(tool, std::move(arguments), std::move(options)));
  }
  /// Sends any other request.
  PendingCall<json::object> request(std::string_view method, json::object params = {},
                                    CallOptions options = {}) {
    return PendingCall<json::object>(begin(method, std::move(params), std::move(options)));
  }
  void notify(std::string_view method, json::object params = {});

  // Lists, with all of their pages. A list of more than kMaxListed entries, or one that takes more
  // than kMaxListedBytes, is Error kLimitReached.

  std::vector<Listed> tools();
  std::vector<Listed> resources();
  std::vector<Listed> resource_templates();
  std::vector<Listed> prompts();

  /// Skills (extension io.modelcontextprotocol/skills, SEP-2640): the definition is the server's
  /// entry, the name and the description are those of its frontmatter. Reads none of their files.
  std::vector<Listed> skills();

  /// The `contents` of a resource.
  json::array read_resource(std::string_view uri);
  /// A file of a skill that skills() has returned: its bytes, if their number, their digest and the
  /// frontmatter are those that the server listed. If not, throws Error -32603, which says what
  /// differs; and -32602 if the skill lists no such file.
  std::string read_skill_file(const Listed& skill, std::string_view uri);
  /// The result of prompts/get.
  json::object get_prompt(std::string_view name, const Variables& arguments = {});
  /// Suggestions for the argument of a prompt, or for the variable of a resource template.
  ArgumentCompletion complete_prompt(std::string_view name, const TypedArgument& argument);
  ArgumentCompletion complete_resource(std::string_view uri_template,
                                       const TypedArgument& argument);
  void ping();

  static constexpr std::size_t kMaxListed = 100'000;
  static constexpr std::size_t kMaxListedBytes = std::size_t{256} << 20U;  // of memory

 private:
  template <class In>
  static json::object to_arguments(const In& arguments) {
    if constexpr (std::is_convertible_v<const In&, json::object>) {
      return arguments;
    } else {
      static_assert(detail::Struct<In>, "the arguments of a tool are a json::object or a struct");
      return encode(arguments).get_object();
    }
  }
  detail::ClientCall begin_call(std::string_view tool, json::object arguments, CallOptions options);
  detail::ClientCall begin(std::string_view method, json::object params, CallOptions options);

  std::shared_ptr<detail::ClientConnection> connection_;
};

/// Connects to a server and waits until it has said what it speaks.
///   http://..., https://...  Streamable HTTP, or HTTP with SSE if the server has only that
///   ws://..., wss://...      WebSocket, an extension of Sluice
///   unix:/path               lines over a Unix domain socket
///   http+unix:/path#/mcp     HTTP over a Unix domain socket; behind # is the path of the requests,
///                            which is /mcp if it is left out
Client connect(std::string_view url, ClientOptions options = {});
/// Starts a server as a child process.
Client connect(const ServerCommand& command, ClientOptions options = {});

}  // namespace sluice

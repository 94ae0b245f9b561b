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
#include <expected>
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

/// Call it within a ClientAnswer. The token asks for a stop when nobody waits for the answer any
/// more: the server has taken the question back, the connection is lost, or the client ends or is
/// stopped (ClientOptions::stop). An answer is not sent then. Elsewhere the token never asks.
std::stop_token question_stop();

/// What a server at an http or https URL speaks. `any`: Streamable HTTP is tried first, and HTTP
/// with SSE (2024-11-05) if the server has only that.
enum class HttpTransport : std::uint8_t { any, streamable, sse };

/// Something that passes between a client and its server: a message, or with HTTP the head of a
/// request or a reply, also of those that authorization takes. Views are valid during the call.
struct Traffic {
  bool is_sent = false;             // by the client
  std::string_view transport = {};  // "http", "websocket", "stdio", "unix" or "local"
  /// JSON-RPC as it was sent, or whatever the server has sent in its place. It may have secrets in
  /// it. Empty: this is a head.
  std::string_view message = {};
  /// Of a head: the method and the URL, or the status. What may be secret in the URL is `***`.
  std::string start = {};
  /// Of a head. Of a request, only well-known harmless fields have their values; all others are
  /// `***`. The id of a session is cut.
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
  /// Whether http, https, ws and wss go by the HTTP proxy that the environment names, as with curl:
  /// http_proxy, https_proxy, all_proxy and no_proxy, in lower or upper case. They are read by
  /// connect() alone. Servers of this machine are reached without a proxy. A variable that cannot
  /// be used is Error 400.
  bool uses_environment_proxies = true;

  // The client declares that it can be asked what has an answer here. These functions run on a
  // thread of the client's own, one at a time, and may block. The client's end waits for them; see
  // question_stop(). A question that the server takes back before its turn comes is not asked.

  /// elicitation/create, both modes. What an accepted form leaves out gets its default.
  ClientAnswer on_elicitation = {};
  ClientAnswer on_sampling = {};  // sampling/createMessage
  ClientAnswer on_roots = {};     // roots/list
  /// Is told of notifications that belong to no call. If more than kMaxNotifications or
  /// kMaxNotificationBytes wait to be told, the oldest are dropped, which is logged. In order among
  /// themselves; a result may be taken before the notifications that came with it are told. (The
  /// events of a call come before its result.)
  std::function<void(std::string_view method, const json::object& params)> on_notification = {};
  /// Is told that the server had forgotten the session, and that there is a new one. What the
  /// server kept for the old one is lost: subscriptions, the log level, what calls stored.
  std::function<void()> on_renewed = {};
  OnTraffic on_traffic = {};  // for logs and debugging
  /// Gives up connect() and every request of the client, which are then Error kCancelled.
  std::stop_token stop = {};

  /// Further members of the client's capabilities, such as `extensions`.
  json::object capabilities = {};
  /// A server that is silent on the first question is taken for a legacy one after this. Over HTTP
  /// it counts from when the connection stands, with its tunnel and TLS. 0: never.
  std::chrono::nanoseconds probe_timeout = std::chrono::seconds(5);
  /// How long a connection may take, with its tunnel and TLS, and how long the server may then be
  /// silent when a session begins. 0: no limit.
  std::chrono::nanoseconds connect_timeout = std::chrono::seconds(30);
  /// Without an answer or progress for so long, a request is given up and the server told, unless
  /// its CallOptions say otherwise. 0: no limit.
  std::chrono::nanoseconds idle_timeout = std::chrono::seconds(60);
  std::size_t max_requests = 1000;  // unanswered; further ones fail with kLimitReached
  /// The most rounds of one request in which the server asks for input (MRTR).
  int max_rounds = 10;

  /// Whether lists and resources are kept for as long as the server says that they are fresh
  /// (2026-07-28, Caching), unless it tells of a change: at most 1,000 results of 16 MiB together.
  /// They are shared with no other connection.
  bool caching = true;
  /// Whether a result that does not follow its tool's outputSchema is Error -32602, which names the
  /// path. Of tools that have been listed; a schema that takes too long counts as followed.
  bool checks_output = true;

  static constexpr std::size_t kMaxNotifications = 10'000;
  static constexpr std::size_t kMaxNotificationBytes = std::size_t{64} << 20U;  // of memory
};

struct CallOptions {
  std::optional<std::chrono::nanoseconds> idle_timeout = {};  // in place of the client's; 0: none
  std::chrono::nanoseconds timeout = {};                      // in total; 0: no limit
  std::stop_token stop = {};                                  // cancels the call
  json::object meta = {};                                     // further members of `_meta`
  /// Log messages of at least this level ("debug", "info", ...) are events too, as far as the
  /// server sends them as part of the call. One of 2026-07-28 is asked for them. One before that
  /// sends what its session's level lets through; over one connection for all calls, such as stdio,
  /// it does not say which call they belong to (ClientOptions::on_notification). Empty: none.
  std::string log_level = {};
  /// Parts of a tool's result that come before it are events too (draft SEP-2998, which may
  /// change). The server is asked for them, in the revisions before 2026-07-28 by the token alone.
  /// The result remains the only result. Not for tasks, and not for other requests than tools/call.
  bool partial_results = false;
  /// Whether events say where the call can be taken up, also by another process, as far as that is
  /// possible (CallEvent::resumption): over Streamable HTTP before 2026-07-28, if the server
  /// numbers the events of its streams. Tasks have ids for that.
  bool resumable = false;
  /// Whether CallEvent::params are set also for progress and log messages, which cost less without.
  bool event_params = true;
  /// Events that wait for next(). If there are more, or they take more than kMaxEventBytes, the
  /// oldest are dropped; see CallEvent.
  std::size_t max_events = 10'000;
  /// The server is not read while half as many wait, but at most for kLongestHold, as servers part
  /// with clients that do not read for longer. Over one connection for all calls, such as stdio,
  /// all of them wait, and the server's questions too; the time is that of all calls together.
  /// Then none holds up for as long, unless events of one are taken. Not for tasks. The time does
  /// not count as silence.
  bool holds_up = false;

  static constexpr std::size_t kMaxEventBytes = std::size_t{64} << 20U;  // of memory
  static constexpr std::chrono::seconds kLongestHold = std::chrono::seconds(15);
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

/// A request that has been sent. Out is ToolReply, json::object (the JSON-RPC result), a
/// RemoteTask, or what `structuredContent` is to be decoded to. Destroying it cancels the request.
/// Thread-safe, but only one thread or coroutine at a time may wait for events, and one for the
/// result.
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
  /// The same without telling the server: the call goes on there, for Client::resume(), and its
  /// session is not ended with this connection. If no event had a CallEvent::resumption, the
  /// request is cancelled.
  void leave() { call_.leave(); }

  // The same for a program with a loop of its own: `done` is called once, at once or later on the
  // thread of all clients, which it must not hold up. Throws std::logic_error if somebody waits for
  // the same already.

  void on_next(std::move_only_function<void(std::optional<CallEvent>)> done) {
    call_.on_next(std::move(done));
  }
  /// Gets the JSON-RPC result, whatever Out is.
  void on_answer(std::move_only_function<void(std::expected<json::object, Error>)> done) {
    call_.on_result(std::move(done));
  }

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
  Out to_out(json::object result) const {
    if constexpr (std::is_constructible_v<Out, detail::ClientTask>) {
      return Out(detail::ClientTask(call_.connection(), result));
    } else if constexpr (std::is_same_v<Out, json::object>) {
      return result;
    } else if constexpr (std::is_same_v<Out, ToolReply>) {
      return ToolReply{.result = std::move(result)};
    } else {
      return ToolReply{.result = std::move(result)}.template as<Out>();
    }
  }

  detail::ClientCall call_;
};

/// A task, as its server describes it (2025-11-25, Tasks; 2026-07-28, SEP-2663).
struct TaskDescription {
  std::string id = {};
  std::string status = {};       // working, input_required, completed, failed or cancelled
  std::string message = {};      // for people; may be empty
  json::object definition = {};  // all of it: `createdAt`, `ttl` or `ttlMs`, ...

  bool has_ended() const;
};

/// A call that goes on at the server after it was answered. The id is all that is needed to take it
/// up again, over another connection or after a restart: Client::task(). Copies are handles of the
/// same task. Dropping them leaves the task alone; only cancel() ends it. Thread-safe.
template <class Out = ToolReply>
class RemoteTask {
 public:
  explicit RemoteTask(detail::ClientTask task) : task_(std::move(task)) {}

  /// Empty if the server has made no task, but answered at once. wait() then has the answer, and
  /// the functions below are Error -32602.
  const std::string& id() const { return task_.id(); }
  /// Waits until the task has ended, with its result or its error; Error kCancelled if it was
  /// cancelled. The server is asked for the state as often as it wants, and again if that fails for
  /// a passing reason. What it asks meanwhile goes to the functions in ClientOptions. The events
  /// are the task's progress, and each change of its state: then `params` is a Task of the
  /// specification, with `taskId` and `status`. Dropping the call ends the waiting alone.
  PendingCall<Out> wait(CallOptions options = {}) const {
    return PendingCall<Out>(task_.wait(std::move(options)));
  }
  TaskDescription state() const;
  /// Asks the server to stop the task, which it may not do at once, or at all. A server of
  /// 2025-11-25 answers with Error -32602 if the task has ended.
  void cancel() const { task_.ask("tasks/cancel"); }

 private:
  detail::ClientTask task_;
};

/// What to be told of; see Client::watch().
struct WatchOptions {
  bool tools = true;                   // changes of the list of tools
  bool prompts = true;                 // of the list of prompts
  bool resources = true;               // of the list of resources
  std::vector<std::string> uris = {};  // changes of these resources
  std::string log_level = {};          // log messages of at least this level; empty: none
  std::stop_token stop = {};           // ends the watch
  std::size_t max_waiting = 10'000;    // notifications; if more wait, the oldest are dropped
};

/// What a server tells on its own.
struct Notification {
  std::string method = {};  // "notifications/tools/list_changed"
  json::object params = {};
  std::uint64_t dropped = 0;  // notifications that were dropped just before this one
};

/// Notifications of a server. Destroying it ends them. Thread-safe, but only one thread or
/// coroutine at a time may wait.
class [[nodiscard]] Watch {
 public:
  explicit Watch(detail::ClientCall call) : call_(std::move(call)) {}

  /// Waits for the next one. Nothing: the server tells no more, or cancel() was called. Throws
  /// Error if the connection is over, or the server refuses to tell.
  std::optional<Notification> next();
  /// The same for a coroutine of a handler or a middleware.
  Task<std::optional<Notification>> next(RequestLoop& loop) {
    if (auto event = co_await call_.next(loop)) co_return to_notification(*std::move(event));
    if (!std::exchange(is_over_, true)) {
      try {
        co_await call_.result(loop);
      } catch (const Error& error) {
        if (error.code != kCancelled) throw;
      }
    }
    co_return std::nullopt;
  }
  void cancel() { call_.cancel(); }

 private:
  static Notification to_notification(CallEvent event);

  PendingCall<json::object> call_;
  bool is_over_ = false;
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
  /// connect() makes them.
  explicit Client(std::shared_ptr<detail::ClientConnection> connection)
      : connection_(std::move(connection)) {}
  /// For the library's own use.
  const std::shared_ptr<detail::ClientConnection>& connection() const { return connection_; }

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
  /// Calls a tool, and lets the server make a task of it. The answer is there as soon as the task
  /// is. The server of 2025-11-25 keeps the task for `keep_for`, if it agrees; that of 2026-07-28
  /// decides whether it makes a task at all. Servers without tasks answer the call itself. A tool
  /// that cannot be a task is Error -32601 in 2025-11-25.
  template <class Out = ToolReply, class In = json::object>
  PendingCall<RemoteTask<Out>> start(std::string_view tool, const In& arguments,
                                     CallOptions options = {},
                                     std::optional<std::chrono::milliseconds> keep_for = {}) {
    return PendingCall<RemoteTask<Out>>(
        begin_task(tool, to_arguments(arguments), std::move(options), keep_for));
  }
  template <class Out = ToolReply>
  PendingCall<RemoteTask<Out>> start(std::string_view tool, json::object arguments = {},
                                     CallOptions options = {},
                                     std::optional<std::chrono::milliseconds> keep_for = {}) {
    return PendingCall<RemoteTask<Out>>(
        begin_task(tool, std::move(arguments), std::move(options), keep_for));
  }
  /// Goes on with a call that another client of the same server has left or lost, such as one of a
  /// process that has died: behind the event that had this CallEvent::resumption. Its session is
  /// not ended, as others may go on in it, too. Error 502: the server does not know the session or
  /// the event any more, or this is no resumption of it, so it is not known whether the call was
  /// carried out. A result is not checked by its tool's outputSchema.
  template <class Out = ToolReply>
  PendingCall<Out> resume(std::string_view resumption, CallOptions options = {}) {
    return PendingCall<Out>(begin_resumed(resumption, std::move(options)));
  }
  /// The task with this id, which the same caller has begun in the same revision. Nothing is sent.
  template <class Out = ToolReply>
  RemoteTask<Out> task(std::string id) const {
    return RemoteTask<Out>(detail::ClientTask(connection_, std::move(id)));
  }
  /// The caller's tasks. Servers of 2026-07-28 list none: Error -32601.
  std::vector<TaskDescription> tasks();

  /// Hears of changes until the Watch is destroyed. What is watched is asked for again when the
  /// session was renewed, or the stream of changes broke off; changes in between may be missed,
  /// which `notifications/subscriptions/acknowledged` (2026-07-28) and ClientOptions::on_renewed
  /// show.
  Watch watch(WatchOptions options = {});

  /// Sends any other request.
  PendingCall<json::object> request(std::string_view method, json::object params = {},
                                    CallOptions options = {}) {
    return PendingCall<json::object>(begin(method, std::move(params), std::move(options)));
  }
  /// Sends a notification, behind those before. It returns at once: one that cannot be sent,
  /// because the connection is over or too much waits, is dropped, which is logged at level debug.
  void notify(std::string_view method, json::object params = {});

  // Lists, with all of their pages. More than kMaxListed entries, kMaxListedBytes or 1,000 pages is
  // Error kLimitReached; pages that together take longer than idle_timeout are kTimedOut.

  /// `until` not empty: no page is read behind the first that has a tool of that name.
  std::vector<Listed> tools(std::string_view until = {});
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
  detail::ClientCall begin_task(std::string_view tool, json::object arguments, CallOptions options,
                                std::optional<std::chrono::milliseconds> keep_for);
  detail::ClientCall begin_resumed(std::string_view resumption, CallOptions options);
  detail::ClientCall begin(std::string_view method, json::object params, CallOptions options);

  std::shared_ptr<detail::ClientConnection> connection_;
};

namespace detail {
TaskDescription describe_task(json::object task);
}

template <class Out>
TaskDescription RemoteTask<Out>::state() const {
  return detail::describe_task(task_.ask("tasks/get"));
}

/// Connects to a server and waits until it has said what it speaks.
///   http://..., https://...  Streamable HTTP, or HTTP with SSE if the server has only that
///   ws://..., wss://...      WebSocket, an extension of Sluice
///   unix:/path               lines over a Unix domain socket
///   http+unix:/path#/mcp     HTTP over a Unix domain socket; behind # is the path of the requests,
///                            which is /mcp if it is left out
Client connect(std::string_view url, ClientOptions options = {});
/// Starts a server as a child process.
Client connect(const ServerCommand& command, ClientOptions options = {});
/// Serves `server` in this process, on a thread of its own, to this client alone: nobody else can
/// reach it. It ends with the connection; `server` itself need not outlive the call, and may be
/// served elsewhere too. Nothing is kept of its lists and resources, whatever
/// ClientOptions::caching says, so changes of the server are seen. Tests have
/// sluice::testing::Client, with virtual time.
Client connect(const Server& server, ClientOptions options = {});

}  // namespace sluice

#pragma once

// A client for tests of your Server: in memory, in every revision, and in virtual time.
//
//   sluice::Server server("adder", "1");
//   server.tool("add", "Adds", [](Add in) { return Total{in.a + in.b}; });
//
//   sluice::testing::Client client(server);
//   EXPECT_EQ(client.call("add", {{"a", 2}, {"b", 3}}).as<Total>().sum, 5);
//
// Requests take the same way through the server as those of any other client; only the network is
// left out. The server runs on the thread of the test, inside the functions of the Client. Its
// clock stands still, except that it jumps ahead when all there is to do is wait: a handler that
// sleeps for an hour answers at once. Works with any test framework.

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/client_info.hpp"
#include "sluice/detail/duration.hpp"
#include "sluice/error.hpp"
#include "sluice/json.hpp"
#include "sluice/principal.hpp"
#include "sluice/schema.hpp"

namespace sluice {
class Server;
}

namespace sluice::testing {

/// What the client answers when the server asks it something: gets the `params` of the question and
/// returns the result. What it throws, the function of the Client that is running throws.
using Answer = std::function<json::object(const json::object& params)>;

// Results for ClientOptions::on_elicitation: what the user does.

/// The user submits a form with this content.
json::object accept(json::object content = {});
/// The user refuses.
json::object decline();
/// The user dismisses the question.
json::object dismiss();

struct ClientOptions {
  std::string revision = "2026-07-28";
  Principal principal{.id = "test"};  // who the caller is
  ClientInfo client_info{.name = "test", .version = "1"};
  /// The HTTP header fields that handlers can read with Call::header().
  std::map<std::string, std::string> headers = {};

  // The client declares that it can be asked what has an Answer here.

  Answer on_elicitation = {};  // elicitation/create, both modes
  Answer on_sampling = {};     // sampling/createMessage
  Answer on_roots = {};        // roots/list

  bool tasks = false;  // declares the tasks extension (2026-07-28)
  /// False if the clock of the server is the real one. Use that where other threads complete a
  /// callback<T>(): virtual time does not wait for them.
  bool virtual_time = true;
  /// A reply that takes longer makes the test fail with std::runtime_error.
  std::chrono::nanoseconds patience = std::chrono::hours(24);
};

/// The answer to a request.
struct Reply {
  json::object result = {};         // empty after an error
  std::optional<Error> error = {};  // the JSON-RPC error
  std::vector<json::object> progress =
      {};  // params of the notifications/progress before the answer

  /// Whether the request failed: a JSON-RPC error, or a tool's result with `isError`.
  bool failed() const;
  /// The text of a tool's result, its blocks separated by line breaks; after an error its message.
  std::string text() const;
  /// What the handler sent with Call::text() and the like before the answer, concatenated.
  std::string partial_text() const;
  /// `structuredContent`; null if there is none.
  const json::value& structured() const;
  /// `structuredContent` as a `T`. Throws Error if it does not fit, or if the request failed.
  template <class T>
  T as() const {
    auto decoded = decode<T>(checked(), "structuredContent", UnknownMembers::ignore);
    if (!decoded) throw_unfit(decoded.error());
    return *std::move(decoded);
  }

 private:
  /// structured(), unless the request failed.
  const json::value& checked() const;
  [[noreturn]] static void throw_unfit(const DecodeError& error);
};

/// A request that has been sent. Valid while its Client exists.
class PendingReply {
 public:
  /// Whether the answer has arrived.
  bool is_ready() const;
  /// The params of the notifications/progress so far.
  const std::vector<json::object>& progress() const;
  /// Their messages so far, concatenated.
  std::string partial_text() const;
  /// Lets time pass until the answer arrives, and returns it. Throws std::runtime_error if it does
  /// not arrive within ClientOptions::patience, or if nothing is left that the server waits for.
  Reply get();
  /// Tells the server that nobody waits for the answer. get() must not be called afterwards.
  void cancel();

 private:
  friend class Client;
  struct State;
  explicit PendingReply(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

/// A client of a Server, with the server's side of the connection. Several clients of one Server
/// have their own sessions, tasks and clocks, but share its handlers. Changes of the Server reach
/// all of them. Not thread-safe.
class Client {
 public:
  /// Connects, and initializes a session in the revisions that have them. Throws
  /// std::invalid_argument for an unknown revision, or for a Server that cannot be served.
  explicit Client(const Server& server, ClientOptions options = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Calls a tool and waits for its answer, as PendingReply::get().
  Reply call(std::string_view tool, json::object arguments = {});
  /// Sends any other request and waits for its answer, as PendingReply::get(). The Client adds what
  /// is missing in `_meta`. If there is a progressToken, progress is among the notifications
  /// instead of in the reply.
  Reply request(std::string_view method, json::object params = {});

  /// Calls a tool, and runs what can run before time passes.
  PendingReply begin_call(std::string_view tool, json::object arguments = {});
  /// The same for any other request.
  PendingReply begin(std::string_view method, json::object params = {});
  void notify(std::string_view method, json::object params = {});

  /// Takes the params of the notifications of `method` that have arrived, such as
  /// "notifications/message". Progress of a request is in its reply instead.
  std::vector<json::object> take_notifications(std::string_view method);
  /// What the server said about itself: the result of `initialize` or `server/discover`.
  const json::object& server_info() const;

  /// Runs what can run before time passes.
  void run();
  /// Lets `time` pass.
  void advance(std::chrono::nanoseconds time);

 private:
  friend class PendingReply;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::testing

#pragma once

// The request that a handler answers.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/client_info.hpp"
#include "sluice/content.hpp"
#include "sluice/detail/call_backend.hpp"
#include "sluice/detail/duration.hpp"
#include "sluice/detail/std_fwd.hpp"
#include "sluice/detail/type.hpp"
#include "sluice/error.hpp"
#include "sluice/json.hpp"
#include "sluice/logging_level.hpp"
#include "sluice/request_loop.hpp"
#include "sluice/schema.hpp"
#include "sluice/task.hpp"

namespace sluice {

namespace detail {

/// Whether a form may have a field of this type (2025-11-25, Elicitation, Requested Schema).
template <class T>
inline constexpr bool kFormField = std::is_arithmetic_v<T> || std::is_enum_v<T> || Text<T>;
template <class T>
inline constexpr bool kFormField<const T> = kFormField<T>;
template <class T>
inline constexpr bool kFormField<std::optional<T>> = kFormField<T>;
template <class T>
inline constexpr bool kFormField<std::vector<T>> = std::is_enum_v<T>;

/// Its address stands for the type.
template <class T>
inline char kTypeTag = 0;

/// Whether a form can ask for a `T`. Forms are flat: their fields do not nest.
template <class T>
consteval bool is_form() {
  if constexpr (Struct<T>) {
    return []<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
      return (kFormField<MemberOf<T, kIndex>> && ...);
    }(std::make_index_sequence<kMembers<T>>{});
  } else {
    return false;
  }
}

}  // namespace detail

/// How a user reacted to an elicitation.
enum class ElicitAction : std::uint8_t { accept, decline, cancel };

/// The answer to an elicitation. Converts to true if the user accepted.
template <class T>
struct Elicited {
  ElicitAction action = ElicitAction::cancel;
  std::optional<T> content = {};  // set if the action is `accept`

  explicit operator bool() const { return content.has_value(); }
};

/// A page for the user to open. The handler chooses the id.
struct UrlElicitation {
  std::string message;
  std::string url;
  std::string elicitation_id;
};

/// Makes the error that a handler throws if the user must visit these pages first. The client may
/// then send the user there and call again. The code is -32042 in 2025-11-25. Other revisions do
/// not have that code, so their clients get -32600 with the same data. Call::elicit_url() works in
/// all revisions.
Error url_elicitation_required(const std::vector<UrlElicitation>& pages);

struct SamplingMessage {
  PromptMessage::Role role = PromptMessage::Role::user;
  Content content;
};

/// A request to the client's model (sampling/createMessage).
struct SamplingRequest {
  std::vector<SamplingMessage> messages = {};
  int max_tokens = 1000;
  std::string system_prompt = {};
  std::optional<double> temperature = {};
  std::vector<std::string> stop_sequences = {};
  /// Any other parameters, such as `tools`, `toolChoice` and `modelPreferences`.
  json::object more = {};
};

struct SamplingResult {
  json::array content;  // content blocks, including tool calls
  std::string model;
  std::string stop_reason;

  /// The text blocks, concatenated.
  std::string text() const;
};

struct Root {
  std::string uri;
  std::string name;
};

/// The request that a handler answers. A blocking() handler may use the functions that describe
/// the request, and text(), progress(), log() and disconnect(); the others throw std::logic_error
/// there. Valid while the handler runs. Not thread-safe: use it only on the event loop of the
/// request or, in a blocking() handler, on the handler's worker thread.
class Call : public RequestLoop {
 public:
  explicit Call(detail::CallBackend& backend) : RequestLoop(backend.loop()), backend_(&backend) {}

  /// The id of the caller: what the Authenticator returned, else "key:" and the name of the API
  /// key, else the peer's address. On stdio and Unix sockets: "uid:" and the number of the user.
  const std::string& principal() const;
  /// Whether the principal is a single party (Principal::isolated). Only then may the handler
  /// return private data.
  bool is_isolated() const;
  /// The MCP revision of the request, such as "2026-07-28".
  std::string_view revision() const;
  /// What the client can be asked for.
  const ClientFeatures& client() const;
  /// What the client says about itself: in the request from 2026-07-28 on, in the `initialize` of
  /// its session before. Empty if it says nothing.
  std::optional<ClientInfo> client_info() const;
  /// The `_meta` of the request; empty if it has none. Valid while the handler runs.
  const json::object& meta() const { return backend_->meta(); }
  /// The value of an HTTP header field that ServerOptions::request_headers names; std::logic_error
  /// if it does not. The field is that of the request, or of the request that opened the WebSocket
  /// or the event stream of `/sse`. Empty if it is absent or repeated, and without HTTP. Valid
  /// while the handler runs.
  std::optional<std::string_view> header(std::string_view name) const;
  /// The `T` that handlers keep for the client's session. It is made by `T()` when it is first
  /// asked for, and destroyed after the end of the session. Each type has one. Several requests of
  /// a session may run at the same time, on several threads, so `T` must be thread-safe. If several
  /// ask for the first time at once, more than one `T` may be made; all get the same one.
  ///
  /// On stdio, Unix sockets, WebSocket and `/sse`, the session is the connection, in every
  /// revision. Over HTTP at `/mcp` it is the one of `Mcp-Session-Id`. Null for requests without it,
  /// such as all that use 2026-07-28, which has no sessions: there, return an id for your state,
  /// and take it as an argument of later calls.
  template <class T>
  std::shared_ptr<T> session_state() {
    return std::static_pointer_cast<T>(session_value(
        &detail::kTypeTag<T>, []() -> std::shared_ptr<void> { return std::make_shared<T>(); }));
  }
  /// The place of the request in a distributed trace. Null if the client sent none. Valid while the
  /// handler runs.
  const TraceContext* trace() const;
  /// A key that identifies the request. All runs of the handler for one request get the same key,
  /// even if the client sends its answers to the handler's questions again; no other request has
  /// it. If something must not happen twice, remember the keys for which it has happened.
  const std::string& idempotency_key() { return backend_->idempotency_key(); }
  /// Stop is requested when nobody waits for the answer any more: the client has disconnected or
  /// cancelled, or the call has timed out. Include <stop_token> before calling this. The token may
  /// be used on any thread.
  std::stop_token stop_token() const;
  /// When the call will time out. Empty: never.
  std::optional<std::chrono::steady_clock::time_point> deadline() const;

  // text(), progress() and log() send something before the answer. They return false under
  // backpressure: the peer reads slowly, and the handler should await room() before it sends more.
  // In a blocking() handler they block until there is room, unless other jobs wait for the worker
  // thread. What the client did not ask for is dropped.

  /// The most bytes of the message of progress(), and of the data and the logger of log().
  static constexpr std::size_t kMaxMessage = std::size_t{64} << 10U;

  /// Sends partial output, as the `message` of a progress notification. A character (UTF-8) may be
  /// split between two calls.
  bool text(std::string_view text) { return backend_->text(text); }
  /// Sends a progress notification. `progress` must rise from one to the next. `message` is cut
  /// after kMaxMessage bytes.
  bool progress(double progress, std::optional<double> total = {}, std::string_view message = {}) {
    return backend_->progress(progress, total, message);
  }
  /// Sends a log message. `logger` names its source; empty: none. It is cut after kMaxMessage
  /// bytes. Data whose JSON text is longer than that, or that is nested more than 120 levels deep,
  /// is replaced by a text that says so.
  bool log(LoggingLevel level, const json::value& data, std::string_view logger = {}) {
    return backend_->log(level, logger, data);
  }
  template <std::same_as<std::string> Text>
  bool log(LoggingLevel level, const Text& text, std::string_view logger = {}) {
    return log(level, json::value(std::string_view(text)), logger);
  }
  /// Closes the client's connection and asks the client to reconnect after `retry`; the client
  /// misses nothing (SEP-1699). Does nothing if that is not possible.
  void disconnect(std::chrono::milliseconds retry) { backend_->disconnect(retry); }

  /// Turns the call into a task: the client is told so at once, and asks for the result later. Does
  /// nothing unless the tool has ToolOptions::asks_first and the client supports tasks (SEP-2663),
  /// or if the client was at its limit of tasks when the call arrived. Throws Error kLimitReached
  /// if it has reached the limit since.
  void begin_task() { backend_->begin_task(); }

  /// Waits until the peer has read enough for more to be sent.
  Awaiting<void> room();

  // Questions to the client.
  //
  // In the revisions up to 2025-11-25, a question is a request to the client, and the handler
  // waits. From 2026-07-28 on, the client gets the question as the result of its call, and calls
  // again with the answer; the handler then runs again from its start. So, before its last
  // question, a handler must not do anything that must not happen twice, and it must use the same
  // key and the same words for a question in each run. The default key is the number of the
  // question.
  //
  // Each question of a handler has a key of its own, in all revisions. These functions throw
  // std::logic_error for a key that an earlier question has, unless that one was given up before it
  // was answered (with_timeout()).
  //
  // All of them throw Error:
  //   -32021         the client has not declared that it can be asked this
  //   -32600         the same before 2026-07-28; the revision has no such question
  //   -32602         the answer does not fit the question
  //   -32603         the client answered with an error: `data` has its `code` and `message`
  //   kTimedOut      up to 2025-11-25, except in a task: no answer for 10 minutes
  //   kLimitReached  the client's share of memory has no room for a long question, the handler has
  //                  asked kMaxQuestions, or it has got no further in 10 runs in a row: each time
  //                  its question had another key or other words, or the client did not answer
  //
  /// The most questions of one handler.
  static constexpr int kMaxQuestions = 10'000;

  /// Asks the user to fill in a form (form mode). `T` is a flat struct of texts, numbers, bools,
  /// enums and std::vectors of enums, or std::optionals of them. Members of the answer that `T`
  /// does not have are ignored.
  template <class T>
  Task<Elicited<T>> elicit(std::string message, std::string key = {}) {
    static_assert(detail::is_form<T>(),
                  "a form has texts, numbers, bools and enums, or lists of "
                  "enums: spread what is nested over several members");
    Elicited<json::object> given =
        co_await elicit(std::move(message), schema_of<T>(), std::move(key));
    Elicited<T> out{.action = given.action};
    if (given.content) {
      decode_content(*detail::readable_type_of<T>(), *given.content,
                     std::addressof(out.content.emplace()));
    }
    co_return out;
  }
  /// The same with the form's JSON Schema, which must be flat as well.
  Task<Elicited<json::object>> elicit(std::string message, json::value schema,
                                      std::string key = {});
  /// Asks the user to open `url` (URL mode). Returns when the user has agreed or refused, which is
  /// before the user has finished with the page: Server::elicitation_completed() announces that.
  Task<ElicitAction> elicit_url(std::string message, std::string url, std::string elicitation_id);
  /// Asks the client's model.
  Task<SamplingResult> sample(SamplingRequest request, std::string key = {});
  /// Asks for the client's roots.
  Task<std::vector<Root>> list_roots(std::string key = {});
  /// Asks several questions at once. Returns the raw results in the order of the questions. Throws
  /// std::logic_error if parameters are nested in more than 120 levels.
  Awaiting<std::vector<json::value>> ask(std::vector<Question> questions);

  // These make questions for ask().

  template <class T>
  static Question elicitation(const std::string& message, std::string key = {}) {
    static_assert(detail::is_form<T>(),
                  "a form has texts, numbers, bools and enums, or lists of "
                  "enums: spread what is nested over several members");
    return elicitation(message, schema_of<T>(), std::move(key));
  }
  static Question elicitation(const std::string& message, json::value schema, std::string key = {});
  Question sampling(SamplingRequest request, std::string key = {}) const;

  detail::CallBackend& backend() { return *backend_; }

 private:
  /// The value of the session for a type; null without a session.
  std::shared_ptr<void> session_value(const void* type, std::shared_ptr<void> (*make)());

  /// Throws the Error for an answer that does not fit its question.
  [[noreturn]] static void throw_unfit(const std::string& why);

  /// Reads the answer to an elicitation into `out`, a `T{}`.
  static void decode_content(const detail::Type& type, const json::object& content, void* out);

  detail::CallBackend* backend_;
  int asked_ = 0;               // number of questions so far, for the default keys
  std::set<std::string> keys_;  // of the questions that have not been given up
};

}  // namespace sluice

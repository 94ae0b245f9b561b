#pragma once

// The request that a handler answers.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

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

/// Whether a form may have such a field (2025-11-25, Elicitation, Requested Schema).
template <class T>
inline constexpr bool kFormField = std::is_arithmetic_v<T> || std::is_enum_v<T> || Text<T>;
template <class T>
inline constexpr bool kFormField<const T> = kFormField<T>;
template <class T>
inline constexpr bool kFormField<std::optional<T>> = kFormField<T>;
template <class T>
inline constexpr bool kFormField<std::vector<T>> = std::is_enum_v<T>;

/// Whether a user can be asked for a `T` in a form, which is flat.
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

/// What a user did with an elicitation.
enum class ElicitAction : std::uint8_t { accept, decline, cancel };

template <class T>
struct Elicited {
  ElicitAction action = ElicitAction::cancel;
  std::optional<T> content = {};  // if accepted

  explicit operator bool() const { return content.has_value(); }
};

/// A page that a user is to open. The id is the handler's own.
struct UrlElicitation {
  std::string message;
  std::string url;
  std::string elicitation_id;
};

/// What a handler throws that cannot go on before the user has been on these pages: the client may
/// send the user there and call again. An error of 2025-11-25 only, in other revisions -32600 with
/// the same data; elicit_url() is there for all.
Error url_elicitation_required(const std::vector<UrlElicitation>& pages);

struct SamplingMessage {
  PromptMessage::Role role = PromptMessage::Role::user;
  Content content;
};

/// What the client's model is asked (sampling/createMessage).
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
  json::array content;  // content blocks; tool calls among them
  std::string model;
  std::string stop_reason;

  /// The text blocks, one after the other.
  std::string text() const;
};

struct Root {
  std::string uri;
  std::string name;
};

/// The request that a handler answers, as long as the handler runs. Belongs to the event loop of
/// the request; in a blocking() handler, to its worker thread.
class Call : public RequestLoop {
 public:
  explicit Call(detail::CallBackend& backend) : RequestLoop(backend.loop()), backend_(&backend) {}

  /// Who asks: what the Authenticator says, the name of an API key ("key:NAME"), the peer's
  /// address, or "uid:N" on stdio and Unix sockets.
  const std::string& principal() const;
  /// Whether that is one party (Principal::isolated): then it may have what is private.
  bool is_isolated() const;
  /// The MCP revision of the request, such as "2026-07-28".
  std::string_view revision() const;
  const ClientFeatures& client() const;
  /// Where the request stands in a distributed trace; null if it does not say.
  const TraceContext* trace() const;
  /// The same for every run of the handler that one request causes, also when a client sends the
  /// answers to its questions again, and for no other request: what must not be done twice is done
  /// once per key, for example by a table of those that are done.
  const std::string& idempotency_key() { return backend_->idempotency_key(); }
  /// Set when nobody waits for the answer any more: disconnected, cancelled, timed out. Include
  /// <stop_token> before calling it.
  std::stop_token stop_token() const;
  /// When the call is given up; none: never.
  std::optional<std::chrono::steady_clock::time_point> deadline() const;

  // What comes before the answer. False: the peer is slow, and nothing more should come before
  // room(). In a blocking() handler they wait for room, unless other jobs wait for its thread. What
  // the caller did not ask for is dropped.

  /// Partial output: the `message` of a progress notification.
  bool text(std::string_view text) { return backend_->text(text); }
  /// `progress` rises from one to the next.
  bool progress(double progress, std::optional<double> total = {}, std::string_view message = {}) {
    return backend_->progress(progress, total, message);
  }
  bool log(LoggingLevel level, const json::value& data, std::string_view logger = {}) {
    return backend_->log(level, logger, data);
  }
  /// Closes the client's connection, which comes back after `retry` and misses nothing (SEP-1699).
  /// Does nothing where that is not possible.
  void disconnect(std::chrono::milliseconds retry) { backend_->disconnect(retry); }

  /// From here on the call is a task, if the tool `asks_first` and the client's call of it is to
  /// become one: the client hears so, and asks for the result later. Throws Error kLimitReached
  /// when there are too many tasks.
  void begin_task() { backend_->begin_task(); }

  /// Waits for that.
  Awaiting<void> room();

  // Questions to the client. In the session eras they are requests to it; from 2026-07-28 on the
  // client gets them as the result and calls again with the answers, and the handler runs again
  // from its start: before it asks, it must not do what may not be done twice, and it asks by the
  // same keys (by default: the number of the question). They throw Error: -32021 if the client has
  // not declared that it can be asked so, -32600 if it cannot be asked at all, -32603 if it answers
  // with an error, of which `data` has `code` and `message`.

  /// Asks the user for a `T`, a struct of texts, numbers, bools, enums and std::vectors of enums
  /// (form mode). What the client answers beyond that is passed over.
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
  Task<Elicited<json::object>> elicit(std::string message, json::value schema,
                                      std::string key = {});
  /// Asks the user to open `url` (URL mode), and returns when the user has agreed to or not, which
  /// is before the page is done with: of that tells Server::elicitation_completed().
  Task<ElicitAction> elicit_url(std::string message, std::string url, std::string elicitation_id);
  /// Asks the client's model.
  Task<SamplingResult> sample(SamplingRequest request, std::string key = {});
  Task<std::vector<Root>> list_roots(std::string key = {});
  /// Asks several things at once; the results are in their order.
  Awaiting<std::vector<json::value>> ask(std::vector<Question> questions);

  // The questions of the functions above, for ask().

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
  /// Throws what a client is told whose answer is not what was asked for.
  [[noreturn]] static void throw_unfit(const std::string& why);

  /// Reads the answer to an elicitation into `out`, a `T{}`.
  static void decode_content(const detail::Type& type, const json::object& content, void* out);

  detail::CallBackend* backend_;
  int asked_ = 0;  // questions: their keys
};

}  // namespace sluice

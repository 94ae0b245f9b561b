#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/crypto/sealer.hpp"
#include "core/error.hpp"
#include "core/executor.hpp"
#include "json/json.hpp"
#include "protocol/syntax/uri_template.hpp"
#include "server/catalog/skills.hpp"
#include "sluice/caching.hpp"
#include "sluice/content.hpp"
#include "sluice/detail/tool_arguments.hpp"
#include "sluice/middleware.hpp"
#include "sluice/principal.hpp"
#include "sluice/task_support.hpp"
#include "stream/stream.hpp"

namespace sluice {

class Forwarder;
class MemoryShare;
class PendingRequest;
class SessionStorage;
class WorkerPool;

/// Describes a tool, a resource or a prompt, in addition to its name (2026-07-28, Tools, Resources
/// and Prompts, Data Types). Clients do not get members that their revision does not have.
struct Metadata {
  std::string title = {};
  std::string icons = {};  // JSON text of an array of icons, or empty
  std::string meta = {};   // JSON text of an object, its `_meta`, or empty
};

/// Answers a request. An Immediate handler returns the result. A Deferred one passes the result to
/// `then` later, which answers the pending request. If the handler returns an Error, that is the
/// answer. Handlers are called on the loop of the request, on several loops at the same time. They
/// must not block, and do not depend on eras and transports.
template <class In, class Out>
struct FeatureHandler {
  using Immediate = std::function<Result<Out>(const In& in)>;
  using Then = std::function<void(PendingRequest& request, Result<Out> out)>;
  /// Must call `then` once, unless the request ends first.
  using Deferred =
      std::function<Result<void>(const In& in, std::shared_ptr<PendingRequest> request, Then then)>;

  FeatureHandler() = default;
  template <std::convertible_to<Immediate> F>
  FeatureHandler(F answer)
      : answer(Immediate(std::move(answer))) {}  // NOLINT(google-explicit-constructor)
  FeatureHandler(Deferred answer)                // NOLINT(google-explicit-constructor)
      : answer(std::move(answer)) {}

  explicit operator bool() const {
    return std::visit([](const auto& each) { return static_cast<bool>(each); }, answer);
  }

  std::variant<Immediate, Deferred> answer;
};

/// One tool. Its handler is called on the loop of the request, on several loops at the same time.
/// It must not block, and does not depend on eras and transports.
struct Tool {
  using Arguments = detail::ToolArguments;
  /// Answers at once. The arguments follow the input schema. An Error becomes a JSON-RPC error,
  /// -32602 for arguments that are wrong in a way that the schema cannot express.
  using Immediate = std::function<Result<ToolResult>(const Arguments& arguments)>;
  /// Answers through `call`, now or later. If it returns an Error, that is the answer.
  using Deferred =
      std::function<Result<void>(const Arguments& arguments, std::shared_ptr<PendingRequest> call)>;

  std::string name;
  std::string description;
  /// JSON text of a schema (2020-12) with "type": "object". Its formats are enforced.
  std::string input_schema;
  std::variant<Immediate, Deferred> handler;
  /// Makes what the handler takes of the arguments of a long call. Null: nothing is to be made.
  /// Called on a worker; throws an Error if they do not fit.
  std::shared_ptr<void> (*decode)(const Arguments& arguments) = nullptr;
  Duration timeout{};              // of checking and decoding long arguments; zero: none
  std::string output_schema = {};  // JSON text, or empty
  std::string annotations = {};    // JSON text of ToolAnnotations, or empty
  Metadata metadata = {};
  TaskSupport task_support = TaskSupport::forbidden;
  /// Matters where the server decides that a call becomes a task (SEP-2663). If true, that happens
  /// when the handler calls PendingRequest::begin_task(). The questions that it asks before that
  /// are rounds of the call.
  bool asks_first = false;
  /// Whether the tool exists for a caller; null: for all. Called on several loops at the same time.
  std::function<bool(const Principal& caller)> visible_to = {};
  /// Whether arguments that are not required may be null (JsonSchemaOptions).
  bool null_for_optional = false;

  /// What `visible_to` says. False if it throws, which is logged.
  [[nodiscard]] bool is_visible_to(const Principal& caller) const;
};

/// A resource at one URI. Its handler is called like a tool's.
struct Resource {
  using Read = FeatureHandler<std::string, ResourceResult>;  // given the URI

  std::string uri;
  std::string name;
  std::string description;
  std::string mime_type;
  Read read;
  std::optional<std::uint64_t> size = {};  // bytes
  std::string annotations = {};            // JSON text, or empty
  Metadata metadata = {};
  Caching caching = {};  // of the contents
};

/// The handlers that complete arguments, by the name of the argument. They are called like a
/// tool's.
using Completers =
    std::map<std::string, FeatureHandler<TypedArgument, ArgumentCompletion>, std::less<>>;

/// The resources at all URIs that match a template. The templates are tried in order, after every
/// Resource.
struct ResourceTemplate {
  /// An Error of code kResourceNotFound is put into the form of the caller's revision.
  using Read = FeatureHandler<ResourceMatch, ResourceResult>;

  UriTemplate uri;
  std::string uri_template;  // the text of `uri`
  std::string name;
  std::string description;
  std::string mime_type;
  Read read;
  Completers completers = {};
  std::string annotations = {};  // JSON text, or empty
  Metadata metadata = {};
  Caching caching = {};  // of the contents
};

struct PromptArgument {
  std::string name;
  std::string description = {};
  bool required = false;
  std::string title = {};
};

/// A prompt, whose handler makes messages from its arguments. Its handlers are called like a
/// tool's.
struct Prompt {
  using Get = FeatureHandler<UriTemplate::Variables, PromptResult>;

  std::string name;
  std::string description;
  std::vector<PromptArgument> arguments;  // required ones are checked before `get` is called
  Get get;
  Completers completers = {};
  Metadata metadata = {};
};

/// Who calls a method that is not one of MCP's. Valid during the call of a handler.
struct MethodCaller {
  const Principal& principal;
  /// Returns what is kept for its connection or its session; null if it has neither.
  std::function<std::shared_ptr<SessionStorage>()> storage;
};

/// A stream method such as `run`. Its handler gets the parameters, which it must not copy whole
/// because they may be long, and makes chunks in `stream` from then on. It ignores those that
/// concern delivery, such as `window`. It is called on the stream's loop.
struct StreamMethod {
  using Handler = std::function<Result<void>(const json::object& params, const MethodCaller& caller,
                                             const std::shared_ptr<ChunkStream>& stream)>;
  /// Returns JSON members that describe the progress of the stream's producer, for the reply to
  /// is_running. They may be empty.
  using Status = std::function<std::string(const ChunkStream& stream)>;

  std::string name;
  Handler handler;
  Status status = {};
  bool streams = false;  // whether a request without `stream` asks for a stream
};

/// A method that neither MCP nor the streams have. It is answered wherever stream methods are, with
/// or without `initialize`. Its handler is called on the loop of the request, on several loops at
/// the same time, and must not block.
struct Function {
  struct Call {
    const json::object& params;
    const MethodCaller& caller;
    std::shared_ptr<MemoryShare> memory;  // the caller's; never null
    Executor& home;                       // the loop that the answer is given on
  };
  /// Takes the JSON text of an object that is not empty, or an error. To be called once, on `home`.
  using Then = std::move_only_function<void(Result<std::string> result)>;
  using Handler = std::function<void(const Call& call, Then then)>;
};

/// What a server offers. Immutable while it is being served: a change makes a new definition
/// (Catalog).
struct ServerDefinition {
  std::string name;
  std::string version;
  std::string instructions = {};
  std::vector<Tool> tools = {};
  std::vector<StreamMethod> stream_methods = {};
  std::map<std::string, Function::Handler, std::less<>> functions = {};  // by their names
  /// Other names of the methods that all streams have, such as abort.
  std::map<std::string, std::string, std::less<>> stream_aliases = {};
  std::vector<Resource> resources = {};
  std::vector<ResourceTemplate> resource_templates = {};
  std::vector<Prompt> prompts = {};
  std::vector<Skill> skills = {};  // added by offer_skills()
  /// Answers in place of all features above; null: they are offered themselves.
  std::shared_ptr<Forwarder> forwarder = {};
  /// Whether clients may subscribe to changes, which ServerHost::publish() announces.
  bool announces_changes = false;
  /// Whether there are stream methods (docs/streaming.md).
  bool has_streams = true;
  /// Whether calls send log messages.
  bool logs = false;
  /// The middleware wraps each request; the first one is the outermost. It may use the threads of
  /// `workers`, which may be null.
  std::vector<Middleware> middleware = {};
  std::shared_ptr<WorkerPool> workers = {};
  /// The threads that run handlers of servers that have been mounted under this one.
  std::vector<std::shared_ptr<WorkerPool>> mounted_workers = {};
  /// Number of entries in one reply to a list request. Clients get the rest with a cursor.
  std::size_t page_size = 1000;
  /// Applies to the list methods and to server/discover.
  Caching list_caching = {.fresh_for = std::chrono::minutes(1)};
  /// Names of the HTTP header fields that handlers may read (Call::header()).
  std::vector<std::string> request_headers = {};
  /// Keys for the state that clients carry from one round of a request to the next: the first key
  /// seals, each of them opens. Empty: a random key, so that all rounds must come to this process.
  /// Servers that share their clients need the same keys.
  std::vector<Sealer::Key> state_keys = {};
  /// Returns why requests cannot be served at present, or an empty text. Called by /readyz. Must be
  /// thread-safe.
  std::function<std::string()> not_ready = {};
  /// Returns Prometheus text to append to /metrics. Must be thread-safe.
  std::function<std::string()> metrics = {};

  /// Whether any call can become a task.
  [[nodiscard]] bool has_tasks() const;
  [[nodiscard]] const StreamMethod* find_stream_method(std::string_view method) const;
  /// The name of a method whose alias this is, or else `method`.
  [[nodiscard]] std::string_view plain_name(std::string_view method) const;
};

}  // namespace sluice

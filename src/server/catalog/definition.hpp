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
#include "json/json.hpp"
#include "protocol/syntax/uri_template.hpp"
#include "server/catalog/skills.hpp"
#include "sluice/caching.hpp"
#include "sluice/content.hpp"
#include "sluice/middleware.hpp"
#include "sluice/task_support.hpp"
#include "stream/stream.hpp"

namespace sluice {

class PendingRequest;
class WorkerPool;

/// What a tool, a resource or a prompt says of itself beside its name (2026-07-28, Tools, Resources
/// and Prompts, Data Types). What a revision does not have is left out for its clients.
struct Metadata {
  std::string title = {};
  std::string icons = {};  // JSON text of an array of icons, or empty
  std::string meta = {};   // JSON text of an object, its `_meta`, or empty
};

/// Answers a request: at once, or later through the pending request, with what its continuation
/// makes of the result. An Error answers with it. Called on the loop of the request, from several
/// loops at once; must not block, and knows nothing of eras and transports.
template <class In, class Out>
struct FeatureHandler {
  using Immediate = std::function<Result<Out>(const In& in)>;
  using Then = std::function<void(PendingRequest& request, Result<Out> out)>;
  /// Calls `then` once, unless the request is over before.
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

/// One tool. Handlers are called on the loop of the request, from several loops at once, and must
/// not block; they know nothing of eras and transports.
struct Tool {
  /// Answers at once. The arguments follow the input schema. An Error is a JSON-RPC error (-32602
  /// for what the schema cannot say).
  using Immediate = std::function<Result<ToolResult>(const json::object& arguments)>;
  /// Answers through the call, now or later. An Error answers the call with it.
  using Deferred = std::function<Result<void>(const json::object& arguments,
                                              std::shared_ptr<PendingRequest> call)>;

  std::string name;
  std::string description;
  std::string input_schema;  // JSON text of a schema (2020-12) with "type": "object"
  std::variant<Immediate, Deferred> handler;
  std::string output_schema = {};  // JSON text, or empty
  std::string annotations = {};    // JSON text of ToolAnnotations, or empty
  Metadata metadata = {};
  TaskSupport task_support = TaskSupport::forbidden;
  /// Where the server decides that a call becomes a task (SEP-2663), the handler says when, by
  /// PendingRequest::begin_task(): until then it asks in rounds of the call.
  bool asks_first = false;
};

/// A resource at one URI. Handlers as a tool's.
struct Resource {
  using Read = FeatureHandler<std::string, std::vector<ResourceContents>>;  // given the URI

  std::string uri;
  std::string name;
  std::string description;
  std::string mime_type;
  Read read;
  std::optional<std::uint64_t> size = {};  // bytes
  std::string annotations = {};            // JSON text, or empty
  Metadata metadata = {};
  Caching caching = {};  // of what is read
};

/// What completes an argument, by its name. Handlers as a tool's.
using Completers =
    std::map<std::string, FeatureHandler<TypedArgument, ArgumentCompletion>, std::less<>>;

/// Resources at all URIs of a template. Asked after every Resource, in their order.
struct ResourceTemplate {
  /// An Error of code kResourceNotFound is put into the form of the caller's revision.
  using Read = FeatureHandler<ResourceMatch, std::vector<ResourceContents>>;

  UriTemplate uri;
  std::string uri_template;  // its text
  std::string name;
  std::string description;
  std::string mime_type;
  Read read;
  Completers completers = {};
  std::string annotations = {};  // JSON text, or empty
  Metadata metadata = {};
  Caching caching = {};  // of what is read
};

struct PromptArgument {
  std::string name;
  std::string description = {};
  bool required = false;
  std::string title = {};
};

/// A prompt's messages, made from its arguments. Handlers as a tool's.
struct Prompt {
  using Get = FeatureHandler<UriTemplate::Variables, PromptResult>;

  std::string name;
  std::string description;
  std::vector<PromptArgument> arguments;  // required ones are checked before `get` is called
  Get get;
  Completers completers = {};
  Metadata metadata = {};
};

/// A stream method such as `run`: given its parameters (without `stream` and what else concerns
/// the delivery), makes chunks in `stream` from then on. Called on the stream's loop.
struct StreamMethod {
  using Handler = std::function<Result<void>(const json::object& params,
                                             const std::shared_ptr<ChunkStream>& stream)>;
  /// JSON members that tell how far the stream's producer is, for is_running; or empty.
  using Status = std::function<std::string(const ChunkStream& stream)>;

  std::string name;
  Handler handler;
  Status status = {};
};

/// What a server offers. Immutable once served: changes are another one (Catalog).
struct ServerDefinition {
  std::string name;
  std::string version;
  std::string instructions = {};
  std::vector<Tool> tools = {};
  std::vector<StreamMethod> stream_methods = {};
  std::vector<Resource> resources = {};
  std::vector<ResourceTemplate> resource_templates = {};
  std::vector<Prompt> prompts = {};
  std::vector<Skill> skills = {};  // added by offer_skills()
  /// Whether ServerHost::publish() will tell of changes, so that clients may ask to hear of them.
  bool announces_changes = false;
  /// Whether calls send log messages.
  bool logs = false;
  /// Around each request, the first one outermost; and the threads that these may use, or null.
  std::vector<Middleware> middleware = {};
  std::shared_ptr<WorkerPool> workers = {};
  /// Entries of one reply to a list request; the rest follows by cursor.
  std::size_t page_size = 1000;
  /// Of these, and of server/discover.
  Caching list_caching = {.fresh_for = std::chrono::minutes(1)};
  /// Keys that seal what clients carry between the rounds of a request; the first one seals. None:
  /// a random one, so that a round must come back to this process. Servers that stand in for each
  /// other share theirs.
  std::vector<Sealer::Key> state_keys = {};
  /// Why requests cannot be served yet or no longer, or empty; asked by /readyz. Thread-safe.
  std::function<std::string()> not_ready = {};
  /// Prometheus text to add to /metrics. Thread-safe.
  std::function<std::string()> metrics = {};

  /// Whether any call can become a task.
  [[nodiscard]] bool has_tasks() const;
  [[nodiscard]] const Tool* find_tool(std::string_view tool) const;
  [[nodiscard]] const StreamMethod* find_stream_method(std::string_view method) const;
  [[nodiscard]] const Resource* find_resource(std::string_view uri) const;
  [[nodiscard]] const Prompt* find_prompt(std::string_view prompt) const;
};

}  // namespace sluice

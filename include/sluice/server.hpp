#pragma once

// A server of the Model Context Protocol.
//
//   struct Add { int a; int b; };
//   struct Total { int sum; };
//
//   int main() {
//     sluice::Server server("demo", "1.0");
//     server.tool("add", "Adds two integers", [](Add in) { return Total{in.a + in.b}; });
//     return sluice::serve(server, sluice::http{.port = 8080});
//   }
//
// A handler has one of four shapes: Out(In), Out(In, Call&), Task<Out>(...) and Stream<Out>(...);
// `In` and `Call&` may be missing. Wrapped into blocking(...), one of the first two runs on a
// worker thread; all others run on the event loop of the request and must not block it. Handlers
// are called from several loops at once. They throw ToolError for a failure that the model should
// read, and Error for a JSON-RPC error; whatever else they throw is logged, and the caller is told
// of an internal error.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/caching.hpp"
#include "sluice/call.hpp"
#include "sluice/content.hpp"
#include "sluice/detail/duration.hpp"
#include "sluice/detail/handler.hpp"
#include "sluice/detail/type.hpp"
#include "sluice/error.hpp"
#include "sluice/json.hpp"
#include "sluice/middleware.hpp"
#include "sluice/schema.hpp"
#include "sluice/serve.hpp"
#include "sluice/stream.hpp"
#include "sluice/task.hpp"
#include "sluice/task_support.hpp"

namespace sluice {

struct Icon {
  std::string src;  // an https: or data: URI
  std::string mime_type = {};
  std::vector<std::string> sizes = {};  // such as "48x48" or "any"
  std::string theme = {};               // "light" or "dark"
};

/// Hints for clients (Tools, ToolAnnotations).
struct ToolAnnotations {
  std::optional<bool> read_only = {};
  std::optional<bool> destructive = {};
  std::optional<bool> idempotent = {};
  std::optional<bool> open_world = {};
};

struct ToolOptions {
  std::string title = {};
  ToolAnnotations annotations = {};
  std::vector<Icon> icons = {};
  json::value input_schema = {};   // for handlers that take json::object; else from the struct
  json::value output_schema = {};  // for handlers that return json::value; else from the struct
  json::object meta = {};          // its `_meta`
  TaskSupport tasks = TaskSupport::forbidden;
  /// Where the server decides that a call becomes a task (SEP-2663), the handler says when, by
  /// Call::begin_task(); until then it asks in rounds of the call.
  bool asks_first = false;
};

struct ResourceOptions {
  std::string title = {};
  std::string description = {};
  std::string mime_type = {};
  std::optional<std::uint64_t> size = {};  // bytes
  Caching caching = {};                    // of what is read
  ContentAnnotations annotations = {};
  std::vector<Icon> icons = {};
  json::object meta = {};
};

/// An argument of a prompt whose handler takes Variables.
struct PromptParameter {
  std::string name;
  std::string description = {};
  bool required = false;
  std::string title = {};
};

struct PromptOptions {
  std::string title = {};
  std::vector<PromptParameter> arguments = {};  // for handlers that take Variables
  std::vector<Icon> icons = {};
  json::object meta = {};
};

/// A file of a skill: its path within the skill, and its bytes.
struct SkillFile {
  std::string path;
  std::string content;
};

/// What a completion is for.
struct PromptRef {
  std::string name;
};
struct TemplateRef {
  std::string uri_template;
};

struct ServerOptions {
  std::string instructions = {};
  /// How long a call may take; then it fails with kTimedOut. Zero: as long as it likes.
  std::chrono::nanoseconds call_timeout = std::chrono::minutes(10);
  /// Threads for blocking() and in_background().
  std::size_t workers = 4;
  std::size_t max_background_jobs = 1000;  // that wait for them
  /// Entries of one reply to a list request; the rest follows by cursor.
  std::size_t page_size = 1000;
  /// Of lists and of what the server says about itself. They are the same for all callers, but who
  /// may see them is for the program to say.
  Caching list_caching = {.fresh_for = std::chrono::minutes(1)};
  /// Whether clients may ask to hear of changes: tools_changed() and the like.
  bool announces_changes = true;
  /// 32-byte keys that seal what clients carry between the rounds of a request; the first one
  /// seals. None: a random one. Servers that stand in for each other share theirs.
  std::vector<std::string> state_keys = {};
};

namespace detail {

template <class Out>
concept ContentOutput = std::same_as<Out, ToolResult> || std::same_as<Out, Content> ||
                        std::same_as<Out, std::vector<Content>>;
template <class Out>
concept JsonOutput = std::is_class_v<Out> && std::convertible_to<const Out&, json::value>;
/// What its type makes structured content: all but texts, content and JSON.
template <class Out>
concept StructuredOutput = !std::is_void_v<Out> && !ContentOutput<Out> &&
                           !std::convertible_to<const Out&, std::string> && !JsonOutput<Out>;

/// Read into `out`, a `T{}`; throw Error -32602 with the path of what does not fit.
void decode_arguments(const Type& type, const json::object& arguments, void* out);
void decode_variables(const Type& type, const Variables& variables, void* out);

ToolResult structured_result(const json::value& value);
ToolResult structured_result(const Type& type, const void* value);
ToolResult content_result(Content&& content);
/// Throws std::invalid_argument if `structured` is no JSON.
ToolResult checked_result(ToolResult&& result);

/// What tools take and return.
struct ToolAdapter {
  using Request = json::object;
  using Result = ToolResult;

  template <class In>
  static In decode(const json::object& arguments) {
    if constexpr (std::same_as<In, Nothing>) {
      return {};
    } else if constexpr (std::same_as<In, json::object>) {
      return arguments;
    } else {
      In in{};
      decode_arguments(*readable_type_of<In>(), arguments, std::addressof(in));
      return in;
    }
  }

  static ToolResult encode() { return {}; }
  static ToolResult encode(ToolResult&& result) { return checked_result(std::move(result)); }
  static ToolResult encode(std::string&& text) { return {.text = std::move(text)}; }
  static ToolResult encode(Content&& content) { return content_result(std::move(content)); }
  static ToolResult encode(std::vector<Content>&& content) {
    return {.content = std::move(content)};
  }
  template <class Out>
  static ToolResult encode(const Out& out) {
    if constexpr (std::same_as<Out, ToolResult>) {
      return checked_result(ToolResult(out));
    } else if constexpr (std::same_as<Out, Content>) {
      return content_result(Content(out));
    } else if constexpr (std::same_as<Out, std::vector<Content>>) {
      return {.content = out};
    } else if constexpr (std::convertible_to<const Out&, std::string>) {
      return {.text = out};
    } else if constexpr (JsonOutput<Out>) {
      return structured_result(out);
    } else {
      return structured_result(*type_of<Out>(), std::addressof(out));
    }
  }
};

using Contents = std::vector<ResourceContents>;

/// What resources return; URI and type are filled in where they are missing.
struct ResourceEncoder {
  using Result = Contents;

  static Contents encode(Contents contents) { return contents; }
  static Contents encode(ResourceContents contents);
  static Contents encode(std::string text);
};

/// What resources at one URI take.
struct ResourceAdapter : ResourceEncoder {
  using Request = std::string;

  template <class In>
  static In decode(const std::string& uri) {
    if constexpr (std::same_as<In, Nothing>) {
      return {};
    } else {
      return uri;
    }
  }
};

/// A struct of texts from values by name.
template <class In>
In variables_as(const Variables& variables) {
  if constexpr (std::same_as<In, Nothing>) {
    return {};
  } else if constexpr (std::same_as<In, Variables>) {
    return variables;
  } else {
    In in{};
    decode_variables(*readable_type_of<In>(), variables, std::addressof(in));
    return in;
  }
}

/// What resources of a template take.
struct TemplateAdapter : ResourceEncoder {
  using Request = ResourceMatch;

  template <class In>
  static In decode(const ResourceMatch& match) {
    if constexpr (std::same_as<In, ResourceMatch>) {
      return match;
    } else {
      return variables_as<In>(match.variables);
    }
  }
};

/// What prompts take and return.
struct PromptAdapter {
  using Request = Variables;
  using Result = PromptResult;

  template <class In>
  static In decode(const Variables& variables) {
    return variables_as<In>(variables);
  }
  static PromptResult encode(PromptResult result) { return result; }
  static PromptResult encode(std::vector<PromptMessage> messages);
  static PromptResult encode(const std::string& text);
};

/// What completions take and return.
struct CompletionAdapter {
  using Request = TypedArgument;
  using Result = ArgumentCompletion;

  template <class In>
  static In decode(const TypedArgument& typed) {
    if constexpr (std::same_as<In, TypedArgument>) {
      return typed;
    } else if constexpr (std::same_as<In, Nothing>) {
      return {};
    } else {
      static_assert(std::constructible_from<In, const std::string&>,
                    "a completion takes a TypedArgument, or what is typed as a std::string");
      return In(typed.value);
    }
  }
  static ArgumentCompletion encode(ArgumentCompletion completion) { return completion; }
  static ArgumentCompletion encode(std::vector<std::string> values);
};

using ToolTable = HandlerTable<json::object, ToolResult>;
using ResourceTable = HandlerTable<std::string, Contents>;
using TemplateTable = HandlerTable<ResourceMatch, Contents>;
using PromptTable = HandlerTable<Variables, PromptResult>;
using CompletionTable = HandlerTable<TypedArgument, ArgumentCompletion>;

/// The type that is a tool's input schema; null: the options say it.
template <class F>
constexpr const Type* tool_input() {
  using In = InOf<F>;
  if constexpr (Struct<In>) {
    return type_of<In>();
  } else {
    static_assert(std::same_as<In, json::object>, "a tool takes a struct, or json::object");
    return nullptr;
  }
}
/// The same for the output.
template <class F>
constexpr const Type* tool_output() {
  if constexpr (StructuredOutput<OutOf<F>>) {
    return type_of<OutOf<F>>();
  } else {
    return nullptr;
  }
}
/// The type whose members are the arguments of a prompt; null: the options say them.
template <class F>
constexpr const Type* prompt_input() {
  using In = InOf<F>;
  if constexpr (std::same_as<In, Nothing> || std::same_as<In, Variables>) {
    return nullptr;
  } else {
    return type_of<In>();
  }
}

class ServerState;

}  // namespace detail

/// What a server offers; copies share it. Thread-safe. What changes while it is served holds for
/// the requests that come from then on, and clients that asked for it are told; each change copies
/// the definition, so that many at once are better made before it is served.
class Server {
 public:
  Server(std::string_view name, std::string_view version);
  Server(std::string_view name, std::string_view version, ServerOptions options);
  Server(const Server& other);
  Server(Server&& other) noexcept;
  Server& operator=(const Server& other);
  Server& operator=(Server&& other) noexcept;
  ~Server();

  // Each of these takes the place of what has the same name or URI. While the server is served,
  // they throw std::invalid_argument for what start() would refuse.

  /// A tool. Its arguments and its structured output are structs (sluice/schema.hpp), or
  /// json::object in and json::value out with the schemas of the options. It may also return text,
  /// Content, several of them, or a ToolResult.
  template <class F>
  Server& tool(std::string_view name, std::string_view description, F handler) {
    return add(name, description, detail::tool_input<F>(), detail::tool_output<F>(),
               detail::kHandlerTable<detail::ToolAdapter, F>,
               detail::new_handler(std::move(handler)), nullptr);
  }
  template <class F>
  Server& tool(std::string_view name, std::string_view description, F handler,
               ToolOptions options) {
    return add(name, description, detail::tool_input<F>(), detail::tool_output<F>(),
               detail::kHandlerTable<detail::ToolAdapter, F>,
               detail::new_handler(std::move(handler)), &options);
  }

  /// A resource. Its handler takes the URI or nothing, and returns text, ResourceContents or
  /// several of them.
  template <class F>
  Server& resource(std::string_view uri, std::string_view name, F handler) {
    return add(uri, name, detail::kHandlerTable<detail::ResourceAdapter, F>,
               detail::new_handler(std::move(handler)), nullptr);
  }
  template <class F>
  Server& resource(std::string_view uri, std::string_view name, F handler,
                   ResourceOptions options) {
    return add(uri, name, detail::kHandlerTable<detail::ResourceAdapter, F>,
               detail::new_handler(std::move(handler)), &options);
  }

  /// Resources at all URIs of a template (RFC 6570). Its handler takes a ResourceMatch, Variables,
  /// or a struct of texts named like the variables. Throws std::invalid_argument for a template
  /// that is none.
  template <class F>
  Server& resource_template(std::string_view uri_template, std::string_view name, F handler) {
    return add(uri_template, name, detail::kHandlerTable<detail::TemplateAdapter, F>,
               detail::new_handler(std::move(handler)), nullptr);
  }
  template <class F>
  Server& resource_template(std::string_view uri_template, std::string_view name, F handler,
                            ResourceOptions options) {
    return add(uri_template, name, detail::kHandlerTable<detail::TemplateAdapter, F>,
               detail::new_handler(std::move(handler)), &options);
  }

  /// A prompt. Its handler takes a struct of texts (those that may be missing are std::optional),
  /// or Variables, and returns text, messages or a PromptResult.
  template <class F>
  Server& prompt(std::string_view name, std::string_view description, F handler) {
    return add(name, description, detail::prompt_input<F>(),
               detail::kHandlerTable<detail::PromptAdapter, F>,
               detail::new_handler(std::move(handler)), nullptr);
  }
  template <class F>
  Server& prompt(std::string_view name, std::string_view description, F handler,
                 PromptOptions options) {
    return add(name, description, detail::prompt_input<F>(),
               detail::kHandlerTable<detail::PromptAdapter, F>,
               detail::new_handler(std::move(handler)), &options);
  }

  /// Completes an argument of a prompt, or a variable of a template, that is there already (else
  /// std::invalid_argument). The handler takes what is typed, or a TypedArgument, and returns the
  /// values.
  template <class Ref, class F>
  Server& completion(const Ref& of, std::string_view argument, F handler) {
    return add(of, argument, detail::kHandlerTable<detail::CompletionAdapter, F>,
               detail::new_handler(std::move(handler)));
  }

  /// A skill (the extension io.modelcontextprotocol/skills, SEP-2640) at `path`, such as
  /// "acme/refunds", with its files, one of them SKILL.md. Throws std::invalid_argument for what is
  /// none.
  Server& skill(std::string_view path, std::vector<SkillFile> files);
  /// All skills below a directory: each folder with a SKILL.md. Throws std::invalid_argument for
  /// what is none, and what cannot be read.
  Server& skills(const std::string& directory);

  // False if there is none. Calls under way go on.

  bool remove_tool(std::string_view name);
  bool remove_resource(std::string_view uri);
  bool remove_resource_template(std::string_view uri_template);
  bool remove_prompt(std::string_view name);

  /// Stands around each request, also those of initialize, tasks and the stream methods, from now
  /// on: for authorization, limits, timing and logging. The first one that is added is the
  /// outermost.
  Server& use(Middleware middleware);

  // Tell the clients that asked for it, wherever this is served. Of what this class changes itself
  // they hear without.

  void tools_changed() const;
  void prompts_changed() const;
  void resources_changed() const;
  void resource_updated(std::string uri) const;
  /// What elicit_url() or url_elicitation_required() sent a user to is done: the client that was
  /// asked by this id hears so, if it speaks 2025-11-25 (others have no such message).
  void elicitation_completed(std::string elicitation_id) const;

  const std::shared_ptr<detail::ServerState>& state() const { return state_; }

 private:
  // Each takes ownership of `handler`, even if it throws. `options` may be null and is moved from.
  // A null `input` or `output` means that the schema comes from the options.

  Server& add(std::string_view name, std::string_view description, const detail::Type* input,
              const detail::Type* output, const detail::ToolTable& table, void* handler,
              ToolOptions* options);
  Server& add(std::string_view uri, std::string_view name, const detail::ResourceTable& table,
              void* handler, ResourceOptions* options);
  Server& add(std::string_view uri_template, std::string_view name,
              const detail::TemplateTable& table, void* handler, ResourceOptions* options);
  Server& add(std::string_view name, std::string_view description, const detail::Type* input,
              const detail::PromptTable& table, void* handler, PromptOptions* options);
  Server& add(const PromptRef& prompt, std::string_view argument,
              const detail::CompletionTable& table, void* handler);
  Server& add(const TemplateRef& resources, std::string_view argument,
              const detail::CompletionTable& table, void* handler);

  std::shared_ptr<detail::ServerState> state_;
};

}  // namespace sluice

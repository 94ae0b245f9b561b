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

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/call.hpp"
#include "sluice/content.hpp"
#include "sluice/detail/handler.hpp"
#include "sluice/error.hpp"
#include "sluice/hooks.hpp"
#include "sluice/json.hpp"
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
  /// How long a call may take; then it fails with -32001. Zero: as long as it likes.
  std::chrono::nanoseconds call_timeout = std::chrono::minutes(10);
  /// Threads for blocking() and in_background().
  std::size_t workers = 4;
  std::size_t max_background_jobs = 1000;  // that wait for them
  /// Entries of one reply to a list request; the rest follows by cursor.
  std::size_t page_size = 1000;
  /// Whether clients may ask to hear of changes: tools_changed() and the like.
  bool announces_changes = true;
  /// 32-byte keys that seal what clients carry between the rounds of a request; the first one
  /// seals. None: a random one. Servers that stand in for each other share theirs.
  std::vector<std::string> state_keys = {};
};

namespace detail {

/// The keys of a JSON object, from the struct or from what the options say.
template <class In>
json::value input_schema(const json::value& given) {
  if constexpr (Struct<In> && !std::same_as<In, Nothing>) {
    return schema_of<In>();
  } else {
    static_assert(std::same_as<In, Nothing> || std::same_as<In, json::object>,
                  "a tool takes a struct, or json::object");
    if (!given.is_null()) return given;
    return {{"type", "object"}};
  }
}

template <class Out>
concept StructuredOutput = Struct<Out> && !std::same_as<Out, ToolResult>;

template <class Out>
json::value output_schema(const json::value& given) {
  if constexpr (StructuredOutput<Out>) {
    return schema_of<Out>();
  } else {
    return given;
  }
}

/// Throws Error -32602 with the path of what does not fit.
[[noreturn]] void throw_unfit_arguments(const DecodeError& error);
ToolResult structured_result(const json::value& value);
ToolResult content_result(std::vector<Content> content);
std::string text_of(const json::value& value);

template <class In>
In decode_arguments(const json::object& arguments) {
  if constexpr (std::same_as<In, Nothing>) {
    return {};
  } else if constexpr (std::same_as<In, json::object>) {
    return arguments;
  } else {
    std::expected<In, DecodeError> in = decode<In>(arguments, "arguments");
    if (!in) throw_unfit_arguments(in.error());
    return std::move(*in);
  }
}

/// What tools may return.
struct ToolEncoder {
  ToolResult operator()() const { return {.content = {}}; }
  ToolResult operator()(ToolResult result) const { return result; }
  ToolResult operator()(Content content) const { return content_result({std::move(content)}); }
  ToolResult operator()(std::vector<Content> content) const {
    return content_result(std::move(content));
  }
  template <class Out>
  ToolResult operator()(const Out& out) const {
    if constexpr (std::convertible_to<const Out&, std::string>) {
      return {.text = out};
    } else if constexpr (std::convertible_to<const Out&, json::value>) {
      return structured_result(out);
    } else if constexpr (StructuredOutput<Out>) {
      return structured_result(encode(out));
    } else {
      return {.text = text_of(encode(out))};
    }
  }
};

/// What resources may return; URI and type are filled in where they are missing.
struct ResourceEncoder {
  using Contents = std::vector<ResourceContents>;
  Contents operator()(Contents contents) const { return contents; }
  Contents operator()(ResourceContents contents) const { return {std::move(contents)}; }
  Contents operator()(std::string text) const {
    return {ResourceContents{.uri = {}, .data = std::move(text)}};
  }
};

struct PromptEncoder {
  PromptResult operator()(PromptResult result) const { return result; }
  PromptResult operator()(std::vector<PromptMessage> messages) const {
    return {.messages = std::move(messages)};
  }
  PromptResult operator()(const std::string& text) const {
    return {.messages = {{.content = Content::text(text)}}};
  }
};

struct CompletionEncoder {
  ArgumentCompletion operator()(ArgumentCompletion completion) const { return completion; }
  ArgumentCompletion operator()(std::vector<std::string> values) const {
    return {.values = std::move(values)};
  }
};

json::object as_json(const Variables& variables);

/// A struct of texts from values by name.
template <class In>
In decode_variables(const Variables& variables) {
  if constexpr (std::same_as<In, Nothing>) {
    return {};
  } else if constexpr (std::same_as<In, Variables>) {
    return variables;
  } else {
    std::expected<In, DecodeError> in =
        decode<In>(as_json(variables), "arguments", UnknownMembers::ignore);
    if (!in) throw_unfit_arguments(in.error());
    return std::move(*in);
  }
}

template <class In>
In decode_match(const ResourceMatch& match) {
  if constexpr (std::same_as<In, ResourceMatch>) {
    return match;
  } else {
    return decode_variables<In>(match.variables);
  }
}

template <class In>
In decode_typed(const TypedArgument& typed) {
  if constexpr (std::same_as<In, TypedArgument>) {
    return typed;
  } else {
    static_assert(std::constructible_from<In, const std::string&>,
                  "a completion takes a TypedArgument, or what is typed as a std::string");
    return In(typed.value);
  }
}

template <class In>
json::value parameters_schema() {
  if constexpr (std::same_as<In, Nothing> || std::same_as<In, Variables>) {
    return nullptr;
  } else {
    return schema_of<In>();
  }
}

using ToolHandler = ErasedHandler<json::object, ToolResult>;
using ResourceHandler = ErasedHandler<std::string, std::vector<ResourceContents>>;
using TemplateHandler = ErasedHandler<ResourceMatch, std::vector<ResourceContents>>;
using PromptHandler = ErasedHandler<Variables, PromptResult>;
using CompletionHandler = ErasedHandler<TypedArgument, ArgumentCompletion>;

class ServerState;

}  // namespace detail

/// What a server offers; copies share it. Thread-safe. What changes while it is served holds for
/// the requests that come from then on, and clients that asked for it are told; each change copies
/// the definition, so that many at once are better made before it is served.
class Server {
 public:
  Server(std::string name, std::string version, ServerOptions options = {});

  // Each of these takes the place of what has the same name or URI. While the server is served,
  // they throw std::invalid_argument for what start() would refuse.

  /// A tool. Its arguments and its structured output are structs (sluice/schema.hpp), or
  /// json::object in and json::value out with the schemas of the options. It may also return text,
  /// Content, several of them, or a ToolResult.
  template <class F>
  Server& tool(std::string name, std::string description, F handler, ToolOptions options = {}) {
    using In = detail::InOf<F>;
    using Out = detail::OutOf<F>;
    options.input_schema = detail::input_schema<In>(options.input_schema);
    options.output_schema = detail::output_schema<Out>(options.output_schema);
    return add(std::move(name), std::move(description), std::move(options),
               detail::erase<json::object, ToolResult>(
                   std::move(handler), detail::decode_arguments<In>, detail::ToolEncoder()));
  }

  /// A resource. Its handler takes the URI or nothing, and returns text, ResourceContents or
  /// several of them.
  template <class F>
  Server& resource(std::string uri, std::string name, F handler, ResourceOptions options = {}) {
    return add(std::move(uri), std::move(name), std::move(options),
               detail::erase<std::string, std::vector<ResourceContents>>(
                   std::move(handler),
                   [](const std::string& asked) {
                     if constexpr (std::same_as<detail::InOf<F>, detail::Nothing>) {
                       return detail::Nothing();
                     } else {
                       return asked;
                     }
                   },
                   detail::ResourceEncoder()));
  }

  /// Resources at all URIs of a template (RFC 6570). Its handler takes a ResourceMatch, Variables,
  /// or a struct of texts named like the variables. Throws std::invalid_argument for a template
  /// that is none.
  template <class F>
  Server& resource_template(std::string uri_template, std::string name, F handler,
                            ResourceOptions options = {}) {
    return add(
        std::move(uri_template), std::move(name), std::move(options),
        detail::erase<ResourceMatch, std::vector<ResourceContents>>(
            std::move(handler), detail::decode_match<detail::InOf<F>>, detail::ResourceEncoder()));
  }

  /// A prompt. Its handler takes a struct of texts (those that may be missing are std::optional),
  /// or Variables, and returns text, messages or a PromptResult.
  template <class F>
  Server& prompt(std::string name, std::string description, F handler, PromptOptions options = {}) {
    using In = detail::InOf<F>;
    return add(std::move(name), std::move(description), std::move(options),
               detail::parameters_schema<In>(),
               detail::erase<Variables, PromptResult>(
                   std::move(handler), detail::decode_variables<In>, detail::PromptEncoder()));
  }

  /// Completes an argument of a prompt, or a variable of a template, that is there already (else
  /// std::invalid_argument). The handler takes what is typed, or a TypedArgument, and returns the
  /// values.
  template <class Ref, class F>
  Server& completion(Ref of, std::string argument, F handler) {
    return add(std::move(of), std::move(argument),
               detail::erase<TypedArgument, ArgumentCompletion>(
                   std::move(handler), detail::decode_typed<detail::InOf<F>>,
                   detail::CompletionEncoder()));
  }

  /// A skill (the extension io.modelcontextprotocol/skills, SEP-2640) at `path`, such as
  /// "acme/refunds", with its files, one of them SKILL.md. Throws std::invalid_argument for what is
  /// none.
  Server& skill(std::string_view path, std::vector<SkillFile> files);
  /// All skills below a directory: each folder with a SKILL.md. Throws std::invalid_argument for
  /// what is none, and what cannot be read.
  Server& skills(const std::filesystem::path& directory);

  // False if there is none. Calls under way go on.

  bool remove_tool(std::string_view name);
  bool remove_resource(std::string_view uri);
  bool remove_resource_template(std::string_view uri_template);
  bool remove_prompt(std::string_view name);

  /// Asked before each request, on its loop: an Error refuses it. For authorization and rate
  /// limits. Several are asked in their order.
  Server& before(BeforeRequest hook);
  /// Told after each request, on its loop. For timing and logging.
  Server& after(AfterRequest hook);

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
  Server& add(std::string name, std::string description, ToolOptions options,
              detail::ToolHandler handler);
  Server& add(std::string uri, std::string name, ResourceOptions options,
              detail::ResourceHandler handler);
  Server& add(std::string uri_template, std::string name, ResourceOptions options,
              detail::TemplateHandler handler);
  Server& add(std::string name, std::string description, PromptOptions options,
              const json::value& parameters, detail::PromptHandler handler);
  Server& add(PromptRef prompt, std::string argument, detail::CompletionHandler handler);
  Server& add(TemplateRef resources, std::string argument, detail::CompletionHandler handler);

  std::shared_ptr<detail::ServerState> state_;
};

}  // namespace sluice

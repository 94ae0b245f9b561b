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
// A handler has one of four shapes: Out(In), Out(In, Call&), Task<Out>(In, Call&) and
// Stream<Out>(In, Call&). Either parameter may be left out.
//
// Threads: a handler runs on the event loop of its request and must not block it. A handler of the
// first two shapes that is wrapped in blocking(...) runs on a worker thread instead. Several
// threads may call the same handler at the same time.
//
// Errors: a handler throws ToolError for a failure that the model should read, and Error for a
// JSON-RPC error. Any other exception is logged, and the caller gets error -32603 (internal error).

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
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
#include "sluice/detail/adapters.hpp"
#include "sluice/detail/duration.hpp"
#include "sluice/detail/handler.hpp"
#include "sluice/detail/type.hpp"
#include "sluice/error.hpp"
#include "sluice/json.hpp"
#include "sluice/middleware.hpp"
#include "sluice/principal.hpp"
#include "sluice/schema.hpp"
#include "sluice/serve.hpp"
#include "sluice/stream.hpp"
#include "sluice/task.hpp"
#include "sluice/task_support.hpp"

namespace sluice {

/// An icon that a client may show (2025-11-25, Icons). Empty members are not sent.
struct Icon {
  std::string src;  // an https: or data: URI
  std::string mime_type = {};
  std::vector<std::string> sizes = {};  // such as "48x48" or "any"
  std::string theme = {};               // "light" or "dark"
};

/// Hints about what a tool does (MCP, Tools, ToolAnnotations). Members without a value are not
/// sent.
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
  json::value input_schema = {};   // used if the handler takes json::object; a struct has its own
  json::value output_schema = {};  // used if the handler returns json::value; likewise
  json::object meta = {};          // the tool's `_meta`
  TaskSupport tasks = TaskSupport::forbidden;
  /// Whether the tool exists for a caller. Null: for all. Where it returns false or throws, the
  /// tool is not listed, and a call is answered as one of an unknown tool. Called on several event
  /// loops at the same time, which it must not block: once for each call, and for each entry of a
  /// list.
  std::function<bool(const Principal& caller)> visible_to = {};
  /// In the tasks extension (SEP-2663) the server decides when a call becomes a task. False: before
  /// the handler starts. True: when the handler calls Call::begin_task(); the questions that it
  /// asks before that are rounds of the call itself.
  bool asks_first = false;
};

struct ResourceOptions {
  std::string title = {};
  std::string description = {};
  std::string mime_type = {};
  std::optional<std::uint64_t> size = {};  // bytes
  Caching caching = {};                    // of the contents
  ContentAnnotations annotations = {};
  std::vector<Icon> icons = {};
  json::object meta = {};
};

/// Declares an argument of a prompt whose handler takes Variables.
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

struct SkillFile {
  std::string path;     // within the skill, such as "references/FORMS.md"
  std::string content;  // bytes
};

// The prompt or the resource template that a completion belongs to.

struct PromptRef {
  std::string name;
};
struct TemplateRef {
  std::string uri_template;
};

struct ServerOptions {
  /// Tells the client's model how to use the server.
  std::string instructions = {};
  /// A call that takes longer fails with kTimedOut. Zero: no limit. At most a year. Long arguments
  /// may take as long again before the handler is called.
  std::chrono::nanoseconds call_timeout = std::chrono::minutes(10);
  /// Number of threads for blocking() and in_background().
  std::size_t workers = 4;
  /// Number of jobs that may wait for a worker. Beyond it, jobs are refused with kBusy.
  std::size_t max_background_jobs = 1000;
  /// Number of entries in one reply to a list request. Clients get the rest with a cursor.
  std::size_t page_size = 1000;
  /// Applies to the list methods and to what the server says about itself. By default no
  /// shared cache may store them: only the program knows who may see them, and
  /// ToolOptions::visible_to makes the lists of tools differ between callers.
  Caching list_caching = {.fresh_for = std::chrono::minutes(1)};
  /// Names of the HTTP header fields that handlers may read with Call::header(), such as
  /// "X-Tenant". No other field is kept.
  std::vector<std::string> request_headers = {};
  /// Whether clients may use the stream methods (docs/streaming.md) and `/streams/`.
  bool stream_methods = true;
  /// Whether clients may subscribe to changes, such as those of tools_changed().
  bool announces_changes = true;
  /// Keys of 32 bytes each. They seal the state that a client carries from one round of a request
  /// to the next: the first key seals, each of them opens. Empty: the server makes a random key.
  /// Servers that share their clients, as behind a load balancer, need the same keys.
  std::vector<std::string> state_keys = {};
};

namespace detail {

class ServerState;

}  // namespace detail

/// The tools, resources and prompts that a server offers. Copies of a Server share them.
/// Thread-safe.
///
/// A server may be changed while it is being served. A change applies to requests that arrive
/// later, and clients that subscribed to changes are notified. Each change copies the whole
/// definition, so make many changes before serving.
class Server {
 public:
  Server(std::string_view name, std::string_view version);
  /// Throws std::invalid_argument if a state key does not have 32 bytes, or if a name of
  /// `request_headers` cannot be that of a header field.
  Server(std::string_view name, std::string_view version, ServerOptions options);
  Server(const Server& other);
  Server(Server&& other) noexcept;
  Server& operator=(const Server& other);
  Server& operator=(Server&& other) noexcept;
  ~Server();

  // Each of these replaces an entry of the same name or URI, with its completions; a warning is
  // logged, unless the server is being served. They throw std::invalid_argument, and change
  // nothing, for a name that is empty or has control characters. start() refuses a definition that
  // cannot be served; while the server is being served, these functions throw std::invalid_argument
  // for it and change nothing.

  /// Adds a tool. Its handler takes a struct (sluice/schema.hpp), json::object with the schema in
  /// `options`, or nothing. It returns structured output as a struct or another type with a JSON
  /// form, or as json::value with the schema in `options`; or text, Content, a std::vector of
  /// Content, a ToolResult, or nothing. Throws std::logic_error if the struct's description breaks
  /// MCP's rules for `x-mcp-header`. Logs a warning about a name that clients may refuse: it should
  /// have at most 128 of A-Z, a-z, 0-9, '_', '-' and '.' (2026-07-28, Tools, Tool Names).
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

  /// Adds a resource. Its handler takes the URI as a std::string, or nothing. It returns text,
  /// ResourceContents, or a std::vector of ResourceContents. Throws std::invalid_argument if `uri`
  /// is not a URI with a scheme (RFC 3986).
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

  /// Adds the resources at all URIs that match a URI template (RFC 6570). Its handler takes a
  /// ResourceMatch, Variables, a struct of texts with the names of the variables, or nothing. It
  /// returns what the handler of a resource returns. Throws std::invalid_argument if `uri_template`
  /// is not a valid template, if a member of the struct is not text, if a variable has no member,
  /// or if a required member is not a variable of the template.
  template <class F>
  Server& resource_template(std::string_view uri_template, std::string_view name, F handler) {
    return add(uri_template, name, detail::variables_input<F>(),
               detail::kHandlerTable<detail::TemplateAdapter, F>,
               detail::new_handler(std::move(handler)), nullptr);
  }
  template <class F>
  Server& resource_template(std::string_view uri_template, std::string_view name, F handler,
                            ResourceOptions options) {
    return add(uri_template, name, detail::variables_input<F>(),
               detail::kHandlerTable<detail::TemplateAdapter, F>,
               detail::new_handler(std::move(handler)), &options);
  }

  /// Adds a prompt. Its handler takes a struct of texts (arguments that may be missing are
  /// std::optional), Variables with the arguments declared in `options`, or nothing. It returns
  /// text, a std::vector of PromptMessage, or a PromptResult. Throws std::invalid_argument if a
  /// member of the struct is not text, or if two arguments have the same name.
  template <class F>
  Server& prompt(std::string_view name, std::string_view description, F handler) {
    return add(name, description, detail::variables_input<F>(),
               detail::kHandlerTable<detail::PromptAdapter, F>,
               detail::new_handler(std::move(handler)), nullptr);
  }
  template <class F>
  Server& prompt(std::string_view name, std::string_view description, F handler,
                 PromptOptions options) {
    return add(name, description, detail::variables_input<F>(),
               detail::kHandlerTable<detail::PromptAdapter, F>,
               detail::new_handler(std::move(handler)), &options);
  }

  /// Adds a completion for an argument of a prompt (PromptRef) or a variable of a resource template
  /// (TemplateRef). The handler takes the text typed so far as a std::string, a TypedArgument, or
  /// nothing. It returns a std::vector of std::string, or an ArgumentCompletion. Throws
  /// std::invalid_argument if the prompt or template has not been added or has no such argument.
  template <class Ref, class F>
  Server& completion(const Ref& of, std::string_view argument, F handler) {
    return add(of, argument, detail::kHandlerTable<detail::CompletionAdapter, F>,
               detail::new_handler(std::move(handler)));
  }

  /// Adds a skill (extension io.modelcontextprotocol/skills, SEP-2640) at `path`, such as
  /// "acme/refunds". One of its files must be SKILL.md. Throws std::invalid_argument if the path or
  /// the files do not make a valid skill.
  Server& skill(std::string_view path, std::vector<SkillFile> files);
  /// Adds all skills below a directory: each folder that contains a SKILL.md. Reads the files now.
  /// Throws std::invalid_argument if a skill is not valid or a file cannot be read.
  Server& skills(const std::string& directory);

  /// Adds what `other` has now: its tools and prompts, with the prefix and '_' before their names,
  /// and its resources, templates and skills, with their URIs as they are. An empty prefix adds
  /// nothing to the names. Handlers keep the timeout and the worker threads of `other`; later
  /// changes of `other` do not matter. What `other`, or a server that it has mounted, announces
  /// with resource_updated() and elicitation_completed() is announced here, too. Throws
  /// std::invalid_argument, and changes nothing, if a name or URI is taken, if `other` has
  /// middleware, which would not run here, or if its handlers may read a header field that
  /// ServerOptions::request_headers does not name here.
  Server& mount(const Server& other, std::string_view prefix = {});

  // Each of these returns false if there is no such entry. Calls under way go on.

  bool remove_tool(std::string_view name);
  /// With the URI of a skill's SKILL.md, removes the skill and all its files. Any other file of a
  /// skill cannot be removed on its own, because the skill says that it has this file: throws
  /// std::invalid_argument.
  bool remove_resource(std::string_view uri);
  bool remove_resource_template(std::string_view uri_template);
  bool remove_prompt(std::string_view name);

  /// Adds middleware, for authorization, limits, timing or logging. It wraps every request that
  /// arrives later, including initialize, the task methods and the stream methods. The middleware
  /// added first is the outermost.
  Server& use(Middleware middleware);

  // These notify the clients that subscribed, wherever this server is served. Call them when
  // something behind a handler has changed. Changes made through this class are announced without
  // a call.

  void tools_changed() const;
  void prompts_changed() const;
  void resources_changed() const;
  void resource_updated(std::string uri) const;
  /// Says that the user has finished with the page of elicit_url() or url_elicitation_required().
  /// Notifies the client that was asked with this id, if it speaks 2025-11-25; other revisions have
  /// no such message.
  void elicitation_completed(std::string elicitation_id) const;

  const std::shared_ptr<detail::ServerState>& state() const { return state_; }

 private:
  // Each of these takes ownership of `handler`, even if it throws. `options` may be null; otherwise
  // it is moved from. A null `input` or `output` means that the schema comes from the options.

  Server& add(std::string_view name, std::string_view description, const detail::Type* input,
              const detail::Type* output, const detail::ToolTable& table, void* handler,
              ToolOptions* options);
  Server& add(std::string_view uri, std::string_view name, const detail::ResourceTable& table,
              void* handler, ResourceOptions* options);
  Server& add(std::string_view uri_template, std::string_view name, const detail::Type* input,
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

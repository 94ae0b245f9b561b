// sluice/server.hpp: handlers of all shapes as a ServerDefinition.

#include "sluice/server.hpp"

#include <algorithm>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json/json.hpp"
#include "rpc/error_codes.hpp"
#include "server/api/server_state.hpp"
#include "server/catalog/skill_folder.hpp"
#include "server/handlers/handler_run.hpp"
#include "sluice/detail/type.hpp"

namespace sluice {

using detail::ServerState;

namespace {

std::string text_or_nothing(const json::value& value) {
  return value.is_null() ? std::string() : to_json(value);
}

std::string text_or_nothing(const json::object& object) {
  return object.empty() ? std::string() : to_json(object);
}

void put(json::object& object, std::string_view name, const std::optional<bool>& value) {
  if (value) object[name] = *value;
}

std::string annotations_json(const ToolAnnotations& annotations) {
  json::object out;
  put(out, "readOnlyHint", annotations.read_only);
  put(out, "destructiveHint", annotations.destructive);
  put(out, "idempotentHint", annotations.idempotent);
  put(out, "openWorldHint", annotations.open_world);
  return text_or_nothing(out);
}

std::string annotations_json(const ContentAnnotations& annotations) {
  json::object out;
  if (!annotations.audience.empty()) {
    out["audience"] = json::array(annotations.audience.begin(), annotations.audience.end());
  }
  if (annotations.priority >= 0) out["priority"] = annotations.priority;
  if (!annotations.last_modified.empty()) out["lastModified"] = annotations.last_modified;
  return text_or_nothing(out);
}

std::string icons_json(const std::vector<Icon>& icons) {
  if (icons.empty()) return {};
  json::array out;
  for (const Icon& icon : icons) {
    json::object each{{"src", icon.src}};
    if (!icon.mime_type.empty()) each["mimeType"] = icon.mime_type;
    if (!icon.sizes.empty()) each["sizes"] = json::array(icon.sizes.begin(), icon.sizes.end());
    if (!icon.theme.empty()) each["theme"] = icon.theme;
    out.push_back(std::move(each));
  }
  return to_json(out);
}

/// `*options`, or default options if null.
template <class Options>
Options taken(Options* options) {
  return options == nullptr ? Options() : std::move(*options);
}

template <class Options>
Metadata metadata_of(const Options& options) {
  return {.title = options.title,
          .icons = icons_json(options.icons),
          .meta = text_or_nothing(options.meta)};
}

/// How a tool's exception is answered. A ToolError, which the model should read, becomes a result.
Result<ToolResult> tool_failure(const std::exception_ptr& exception, FailureLog& log) {
  try {
    std::rethrow_exception(exception);
  } catch (const ToolError& failure) {
    return ToolResult{.text = std::string(what_of(failure)), .is_error = true};
  } catch (...) {
    return std::unexpected(error_of(exception, log));
  }
}

template <class Out>
struct Failure {
  static Result<Out> of(const std::exception_ptr& exception, FailureLog& log) {
    return std::unexpected(error_of(exception, log));
  }
};
template <>
struct Failure<ToolResult> {
  static Result<ToolResult> of(const std::exception_ptr& exception, FailureLog& log) {
    return tool_failure(exception, log);
  }
};

/// A handler, ready to be called. Either `immediate` or `deferred` is set.
template <class Request, class Out>
struct Handler {
  std::function<Out(const Request& request)> immediate;
  std::function<Task<Out>(const Request& request, Call& call)> deferred;
  std::shared_ptr<FailureLog> failures;
};

/// Calls the immediate handler. Turns an exception into a result or an Error.
template <class Request, class Out>
auto guarded(Handler<Request, Out> handler) {
  return [handler = std::move(handler)](const Request& request) -> Result<Out> {
    try {
      return handler.immediate(request);
    } catch (...) {
      return Failure<Out>::of(std::current_exception(), *handler.failures);
    }
  };
}

/// Runs the deferred handler for the request. `then` gets its result, or what its exception
/// becomes.
template <class Request, class Out>
auto running(Handler<Request, Out> handler, const ServerState& state) {
  HandlerRun::Options options = state.runs();
  options.failures = handler.failures;
  return [handler = std::move(handler), options = std::move(options)](
             const Request& in, std::shared_ptr<PendingRequest> request,
             std::function<void(PendingRequest&, Result<Out>)> then) -> Result<void> {
    // `in` belongs to the message: the handler decodes what it needs before it suspends.
    HandlerRun::start<Out>(
        std::move(request), options, [&](Call& call) { return handler.deferred(in, call); },
        [then](PendingRequest& asker, Out out) { then(asker, std::move(out)); },
        [then, failures = handler.failures](PendingRequest& asker,
                                            const std::exception_ptr& exception) {
          then(asker, Failure<Out>::of(exception, *failures));
        });
    return {};
  };
}

/// Does not suspend, so `request` exists until the end.
template <class Request, class Out>
Task<Out> run_at_once(const detail::HandlerTable<Request, Out>& table,
                      std::shared_ptr<void> handler, const Request& request, Call& call) {
  co_return table.answer_call(handler.get(), request, call);
}

/// Makes a Handler that owns `object`. `table` must exist as long as the program runs. `kind` and
/// `name` are for the log.
template <class Request, class Out>
Handler<Request, Out> owned(const detail::HandlerTable<Request, Out>& table, void* object,
                            std::string_view kind, std::string_view name) {
  std::shared_ptr<void> handler(object, table.destroy);
  auto failures = std::make_shared<FailureLog>(kind, std::string(name));
  if (table.answer != nullptr) {
    return {.immediate = [answer = table.answer, handler = std::move(handler)](
                             const Request& request) { return answer(handler.get(), request); },
            .deferred = {},
            .failures = std::move(failures)};
  }
  return {.immediate = {},
          .deferred =
              [&table, handler = std::move(handler)](const Request& request, Call& call) {
                return table.run != nullptr ? table.run(handler, request, call)
                                            : run_at_once(table, handler, request, call);
              },
          .failures = std::move(failures)};
}

template <class Request, class Out>
FeatureHandler<Request, Out> feature(Handler<Request, Out> handler, const ServerState& state) {
  if (handler.immediate) return guarded(std::move(handler));
  using Deferred = typename FeatureHandler<Request, Out>::Deferred;
  return Deferred(running(std::move(handler), state));
}

/// Wraps a handler: fills in the URI and the MIME type where its result has none.
template <class Request>
Handler<Request, std::vector<ResourceContents>> completed(
    Handler<Request, std::vector<ResourceContents>> handler, std::string mime_type) {
  using Contents = std::vector<ResourceContents>;
  const auto fill = [mime_type = std::move(mime_type)](Contents contents, const Request& request) {
    for (ResourceContents& each : contents) {
      if constexpr (std::same_as<Request, std::string>) {
        if (each.uri.empty()) each.uri = request;
      } else {
        if (each.uri.empty()) each.uri = request.uri;
      }
      if (each.mime_type.empty()) each.mime_type = mime_type;
    }
    return contents;
  };
  if (handler.immediate) {
    return {.immediate = [answer = std::move(handler.immediate),
                          fill](const Request& request) { return fill(answer(request), request); },
            .deferred = {},
            .failures = std::move(handler.failures)};
  }
  struct Wait {
    static Task<Contents> run(Task<Contents> contents, Request request, decltype(fill) fill) {
      co_return fill(co_await std::move(contents), request);
    }
  };
  return {.immediate = {},
          .deferred = [begin = std::move(handler.deferred), fill](
                          const Request& request,
                          Call& call) { return Wait::run(begin(request, call), request, fill); },
          .failures = std::move(handler.failures)};
}

Tool::Deferred deferred_tool(Handler<json::object, ToolResult> handler, const ServerState& state) {
  return [run = running(std::move(handler), state)](const json::object& arguments,
                                                    std::shared_ptr<PendingRequest> request) {
    return run(arguments, std::move(request), [](PendingRequest& asker, Result<ToolResult> result) {
      if (result) {
        asker.complete(*std::move(result));
      } else {
        asker.fail(result.error());
      }
    });
  };
}

Sealer::Key key_of(const std::string& bytes) {
  Sealer::Key key{};
  if (bytes.size() != key.size()) {
    throw std::invalid_argument("a key of state_keys has " + std::to_string(key.size()) + " bytes");
  }
  std::ranges::transform(bytes, key.begin(), [](char c) { return static_cast<unsigned char>(c); });
  return key;
}

/// Adds `entry` to a list of the definition, or replaces the entry that has the same name.
template <class T>
void put(ServerState& state, std::vector<T> ServerDefinition::* list, std::string T::* name,
         T entry, Change::Kind kind) {
  state.change(kind, [&](ServerDefinition& definition) {
    std::vector<T>& known = definition.*list;
    const auto found = std::ranges::find(known, entry.*name, name);
    if (found == known.end()) {
      known.push_back(std::move(entry));
    } else {
      std::swap(*found, entry);
    }
    return true;
  });
}

/// Removes the entry with that name from a list of the definition. Returns false if there is none.
template <class T>
bool take(ServerState& state, std::vector<T> ServerDefinition::* list, std::string T::* name,
          std::string_view asked, Change::Kind kind) {
  std::vector<T> removed;
  return state.change(kind, [&](ServerDefinition& definition) {
    std::vector<T>& known = definition.*list;
    const auto found = std::ranges::find(known, asked, name);
    if (found == known.end()) return false;
    removed.push_back(std::move(*found));
    known.erase(found);
    return true;
  });
}

void offer(ServerState& state, std::vector<Skill> skills) {
  state.change(Change::Kind::resources, [&](ServerDefinition& definition) {
    const Result<void> offered = offer_skills(definition, std::move(skills));
    if (!offered) throw std::invalid_argument(offered.error().message);
    return true;
  });
}

/// Adds arguments to a prompt, from the schema of a struct of texts.
void append_arguments(Prompt& prompt, const json::object& schema) {
  const auto text_at = [](const json::object& object, std::string_view key) {
    const json::value* const text = object.if_contains(key);
    return text == nullptr ? std::string() : std::string(text->as_string());
  };
  const json::value* const required = schema.if_contains("required");
  for (const auto& [key, property] : schema.at("properties").as_object()) {
    const json::object& said = property.as_object();
    if (text_at(said, "type") != "string") {
      throw std::invalid_argument("an argument of a prompt is text: " + std::string(key));
    }
    prompt.arguments.push_back(
        {.name = std::string(key),
         .description = text_at(said, "description"),
         .required =
             required != nullptr && std::ranges::find(required->as_array(), json::value(key)) !=
                                        required->as_array().end(),
         .title = text_at(said, "title")});
  }
}

}  // namespace

namespace detail {

namespace {

[[noreturn]] void throw_unfit_arguments(const DecodeError& error) {
  throw Error{kInvalidParams, "Invalid params: " + error.describe(), {}};
}

}  // namespace

void decode_arguments(const Type& type, const json::object& arguments, void* out) {
  DecodeError error;
  if (!decode(type, arguments, out, "arguments", UnknownMembers::reject, error)) {
    throw_unfit_arguments(error);
  }
}

void decode_variables(const Type& type, const Variables& variables, void* out) {
  json::object arguments;
  for (const auto& [name, value] : variables) arguments[name] = value;
  DecodeError error;
  if (!decode(type, arguments, out, "arguments", UnknownMembers::ignore, error)) {
    throw_unfit_arguments(error);
  }
}

ToolResult structured_result(json::value value) {
  // The structured content serves as the text, too.
  return {.value = std::make_shared<const json::value>(std::move(value))};
}

ToolResult structured_result(const Type& type, const void* value) {
  return {.value = std::make_shared<const json::value>(encode(type, value))};
}

ToolResult content_result(Content&& content) {
  ToolResult out;
  out.content.push_back(std::move(content));
  return out;
}

Contents ResourceEncoder::encode(ResourceContents contents) {
  Contents out;
  out.push_back(std::move(contents));
  return out;
}

Contents ResourceEncoder::encode(std::string text) {
  return encode(ResourceContents{.uri = {}, .data = std::move(text)});
}

PromptResult PromptAdapter::encode(std::vector<PromptMessage> messages) {
  return {.messages = std::move(messages)};
}

PromptResult PromptAdapter::encode(const std::string& text) {
  // A list of initializers would copy it.
  PromptResult out;
  out.messages.push_back({.content = Content::text(text)});
  return out;
}

ArgumentCompletion CompletionAdapter::encode(std::vector<std::string> values) {
  return {.values = std::move(values)};
}

}  // namespace detail

Server::Server(std::string_view name, std::string_view version)
    : Server(name, version, ServerOptions()) {}

Server::Server(std::string_view name, std::string_view version, ServerOptions options) {
  ServerDefinition definition;
  definition.name = name;
  definition.version = version;
  definition.instructions = std::move(options.instructions);
  definition.page_size = options.page_size;
  definition.list_caching = options.list_caching;
  definition.announces_changes = options.announces_changes;
  definition.logs = true;
  for (const std::string& key : options.state_keys) definition.state_keys.push_back(key_of(key));
  HandlerRun::Options runs{
      .timeout = options.call_timeout,
      .workers = std::make_shared<WorkerPool>(options.workers, options.max_background_jobs)};
  definition.workers = runs.workers;
  state_ = std::make_shared<ServerState>(std::move(definition), std::move(runs));
}

Server::Server(const Server& other) = default;
Server::Server(Server&& other) noexcept = default;
Server& Server::operator=(const Server& other) = default;
Server& Server::operator=(Server&& other) noexcept = default;
Server::~Server() = default;

Server& Server::add(std::string_view name, std::string_view description, const detail::Type* input,
                    const detail::Type* output, const detail::ToolTable& table, void* handler,
                    ToolOptions* options) {
  Handler<json::object, ToolResult> owner = owned(table, handler, "tool", name);
  ToolOptions said = taken(options);
  if (input != nullptr) {
    said.input_schema = detail::schema_of(*input);
  } else if (said.input_schema.is_null()) {
    said.input_schema = {{"type", "object"}};
  }
  if (output != nullptr) said.output_schema = detail::schema_of(*output, SchemaUse::encoding);
  Tool tool{.name = std::string(name),
            .description = std::string(description),
            .input_schema = to_json(said.input_schema),
            .handler = {},
            .output_schema = text_or_nothing(said.output_schema),
            .annotations = annotations_json(said.annotations),
            .metadata = metadata_of(said),
            .task_support = said.tasks,
            .asks_first = said.asks_first,
            .null_for_optional = input != nullptr};
  if (owner.immediate) {
    tool.handler = Tool::Immediate(guarded(std::move(owner)));
  } else {
    tool.handler = deferred_tool(std::move(owner), *state_);
  }
  put(*state_, &ServerDefinition::tools, &Tool::name, std::move(tool), Change::Kind::tools);
  return *this;
}

Server& Server::add(std::string_view uri, std::string_view name, const detail::ResourceTable& table,
                    void* handler, ResourceOptions* said) {
  Handler<std::string, detail::Contents> owner = owned(table, handler, "resource", uri);
  const ResourceOptions options = taken(said);
  put(*state_, &ServerDefinition::resources, &Resource::uri,
      Resource{.uri = std::string(uri),
               .name = std::string(name),
               .description = options.description,
               .mime_type = options.mime_type,
               .read = feature(completed(std::move(owner), options.mime_type), *state_),
               .size = options.size,
               .annotations = annotations_json(options.annotations),
               .metadata = metadata_of(options),
               .caching = options.caching},
      Change::Kind::resources);
  return *this;
}

Server& Server::add(std::string_view uri_template, std::string_view name,
                    const detail::TemplateTable& table, void* handler, ResourceOptions* said) {
  Handler<ResourceMatch, detail::Contents> owner =
      owned(table, handler, "resource_template", uri_template);
  const ResourceOptions options = taken(said);
  Result<UriTemplate> parsed = UriTemplate::parse(uri_template);
  if (!parsed) throw std::invalid_argument(parsed.error().message);
  put(*state_, &ServerDefinition::resource_templates, &ResourceTemplate::uri_template,
      ResourceTemplate{.uri = std::move(*parsed),
                       .uri_template = std::string(uri_template),
                       .name = std::string(name),
                       .description = options.description,
                       .mime_type = options.mime_type,
                       .read = feature(completed(std::move(owner), options.mime_type), *state_),
                       .annotations = annotations_json(options.annotations),
                       .metadata = metadata_of(options),
                       .caching = options.caching},
      Change::Kind::resources);
  return *this;
}

Server& Server::add(std::string_view name, std::string_view description, const detail::Type* input,
                    const detail::PromptTable& table, void* handler, PromptOptions* said) {
  Handler<Variables, PromptResult> owner = owned(table, handler, "prompt", name);
  const PromptOptions options = taken(said);
  Prompt prompt{.name = std::string(name),
                .description = std::string(description),
                .arguments = {},
                .get = feature(std::move(owner), *state_),
                .metadata = metadata_of(options)};
  for (const PromptParameter& parameter : options.arguments) {
    prompt.arguments.push_back(
        {parameter.name, parameter.description, parameter.required, parameter.title});
  }
  if (input != nullptr) append_arguments(prompt, detail::schema_of(*input).as_object());
  put(*state_, &ServerDefinition::prompts, &Prompt::name, std::move(prompt), Change::Kind::prompts);
  return *this;
}

Server& Server::add(const PromptRef& prompt, std::string_view argument,
                    const detail::CompletionTable& table, void* handler) {
  Handler<TypedArgument, ArgumentCompletion> owner = owned(table, handler, "completion", argument);
  const std::string name(argument);
  state_->change({}, [&](ServerDefinition& definition) {
    const auto found = std::ranges::find(definition.prompts, prompt.name, &Prompt::name);
    if (found == definition.prompts.end()) {
      throw std::invalid_argument("there is no prompt " + prompt.name);
    }
    if (std::ranges::find(found->arguments, name, &PromptArgument::name) ==
        found->arguments.end()) {
      throw std::invalid_argument("the prompt " + prompt.name + " has no argument " + name);
    }
    found->completers.insert_or_assign(name, feature(std::move(owner), *state_));
    return true;
  });
  return *this;
}

Server& Server::add(const TemplateRef& resources, std::string_view argument,
                    const detail::CompletionTable& table, void* handler) {
  Handler<TypedArgument, ArgumentCompletion> owner = owned(table, handler, "completion", argument);
  const std::string name(argument);
  state_->change({}, [&](ServerDefinition& definition) {
    const auto found = std::ranges::find(definition.resource_templates, resources.uri_template,
                                         &ResourceTemplate::uri_template);
    if (found == definition.resource_templates.end()) {
      throw std::invalid_argument("there is no resource template " + resources.uri_template);
    }
    if (!found->uri.has_variable(name)) {
      throw std::invalid_argument(resources.uri_template + " has no variable " + name);
    }
    found->completers.insert_or_assign(name, feature(std::move(owner), *state_));
    return true;
  });
  return *this;
}

bool Server::remove_tool(std::string_view name) {
  return take(*state_, &ServerDefinition::tools, &Tool::name, name, Change::Kind::tools);
}

bool Server::remove_resource(std::string_view uri) {
  return take(*state_, &ServerDefinition::resources, &Resource::uri, uri, Change::Kind::resources);
}

bool Server::remove_resource_template(std::string_view uri_template) {
  return take(*state_, &ServerDefinition::resource_templates, &ResourceTemplate::uri_template,
              uri_template, Change::Kind::resources);
}

bool Server::remove_prompt(std::string_view name) {
  return take(*state_, &ServerDefinition::prompts, &Prompt::name, name, Change::Kind::prompts);
}

Server& Server::skill(std::string_view path, std::vector<SkillFile> files) {
  std::vector<Skill::Source> sources;
  for (SkillFile& file : files) {
    sources.push_back({std::move(file.path), std::move(file.content)});
  }
  Result<Skill> made = Skill::make(path, std::move(sources));
  if (!made) throw std::invalid_argument(made.error().message);
  std::vector<Skill> skills;
  skills.push_back(std::move(*made));
  offer(*state_, std::move(skills));
  return *this;
}

Server& Server::skills(const std::string& directory) {
  Result<std::vector<Skill>> found = read_skills(directory);
  if (!found) throw std::invalid_argument(found.error().message);
  offer(*state_, std::move(*found));
  return *this;
}

Server& Server::use(Middleware middleware) {
  state_->change({}, [&](ServerDefinition& definition) {
    definition.middleware.push_back(std::move(middleware));
    return true;
  });
  return *this;
}

void Server::tools_changed() const {
  state_->publish({.kind = Change::Kind::tools});
}
void Server::prompts_changed() const {
  state_->publish({.kind = Change::Kind::prompts});
}
void Server::resources_changed() const {
  state_->publish({.kind = Change::Kind::resources});
}
void Server::resource_updated(std::string uri) const {
  state_->publish({.kind = Change::Kind::resource, .subject = std::move(uri)});
}
void Server::elicitation_completed(std::string elicitation_id) const {
  state_->publish({.kind = Change::Kind::elicitation, .subject = std::move(elicitation_id)});
}

}  // namespace sluice

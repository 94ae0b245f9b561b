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

#include "core/log/log.hpp"
#include "json/json.hpp"
#include "server/api/entry_checks.hpp"
#include "server/api/mounting.hpp"
#include "server/api/options_json.hpp"
#include "server/api/owned_handler.hpp"
#include "server/api/server_state.hpp"
#include "server/catalog/skill_folder.hpp"
#include "server/handlers/handler_run.hpp"
#include "sluice/detail/type.hpp"

namespace sluice {

using detail::ServerState;

namespace {

/// `*options`, or default options if null.
template <class Options>
Options taken(Options* options) {
  return options == nullptr ? Options() : std::move(*options);
}

Tool::Deferred deferred_tool(OwnedHandler<Tool::Arguments, ToolResult> handler,
                             const ServerState& state) {
  return [run = running(std::move(handler), state)](const Tool::Arguments& arguments,
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
  const bool was_served = state.is_served();
  const std::string its_name = entry.*name;
  bool replaces = false;
  state.change({kind}, [&](ServerDefinition& definition) {
    std::vector<T>& known = definition.*list;
    const auto found = std::ranges::find(known, its_name, name);
    replaces = found != known.end();
    if (replaces) {
      std::swap(*found, entry);
    } else {
      known.push_back(std::move(entry));
    }
    return true;
  });
  if (!replaces || was_served) return;
  log_warning("an entry of a server was added twice: the second one replaces the first",
              {{"name", std::string_view(its_name)}});
}

/// Removes the entry with that name from a list of the definition. Returns false if there is none.
template <class T>
bool take(ServerState& state, std::vector<T> ServerDefinition::* list, std::string T::* name,
          std::string_view asked, Change::Kind kind) {
  std::vector<T> removed;
  return state.change({kind}, [&](ServerDefinition& definition) {
    std::vector<T>& known = definition.*list;
    const auto found = std::ranges::find(known, asked, name);
    if (found == known.end()) return false;
    removed.push_back(std::move(*found));
    known.erase(found);
    return true;
  });
}

void offer(ServerState& state, std::vector<Skill> skills) {
  state.change({Change::Kind::resources}, [&](ServerDefinition& definition) {
    const Result<void> offered = offer_skills(definition, std::move(skills));
    if (!offered) throw std::invalid_argument(offered.error().message);
    return true;
  });
}

}  // namespace

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
  definition.has_streams = options.stream_methods;
  definition.logs = true;
  for (const std::string& field : options.request_headers) check_header_name(field);
  definition.request_headers = std::move(options.request_headers);
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
  OwnedHandler<Tool::Arguments, ToolResult> owner = owned(table, handler, "tool", name);
  check_tool_name(name);
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
            .decode = table.decode,
            .timeout = state_->runs().timeout,
            .output_schema = text_or_nothing(said.output_schema),
            .annotations = annotations_json(said.annotations),
            .metadata = metadata_of(said),
            .task_support = said.tasks,
            .asks_first = said.asks_first,
            .visible_to = std::move(said.visible_to),
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
  OwnedHandler<std::string, ResourceResult> owner = owned(table, handler, "resource", uri);
  check_uri(uri);
  check_name("resource", name);
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

Server& Server::add(std::string_view uri_template, std::string_view name, const detail::Type* input,
                    const detail::TemplateTable& table, void* handler, ResourceOptions* said) {
  OwnedHandler<ResourceMatch, ResourceResult> owner =
      owned(table, handler, "resource_template", uri_template);
  UriTemplate parsed = checked_template(uri_template);
  check_name("resource template", name);
  if (input != nullptr) check_variables(uri_template, parsed, *input);
  const ResourceOptions options = taken(said);
  put(*state_, &ServerDefinition::resource_templates, &ResourceTemplate::uri_template,
      ResourceTemplate{.uri = std::move(parsed),
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
  OwnedHandler<Variables, PromptResult> owner = owned(table, handler, "prompt", name);
  check_name("prompt", name);
  const PromptOptions options = taken(said);
  Prompt prompt{.name = std::string(name),
                .description = std::string(description),
                .arguments = {},
                .get = feature(std::move(owner), *state_),
                .metadata = metadata_of(options)};
  if (input != nullptr) prompt.arguments = text_members("prompt", name, *input);
  for (const PromptParameter& parameter : options.arguments) {
    prompt.arguments.push_back(
        {parameter.name, parameter.description, parameter.required, parameter.title});
  }
  check_arguments(name, prompt.arguments);
  put(*state_, &ServerDefinition::prompts, &Prompt::name, std::move(prompt), Change::Kind::prompts);
  return *this;
}

Server& Server::add(const PromptRef& prompt, std::string_view argument,
                    const detail::CompletionTable& table, void* handler) {
  auto completer = feature(owned(table, handler, "completion", argument), *state_);
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
    std::swap(found->completers[name], completer);
    return true;
  });
  return *this;
}

Server& Server::add(const TemplateRef& resources, std::string_view argument,
                    const detail::CompletionTable& table, void* handler) {
  auto completer = feature(owned(table, handler, "completion", argument), *state_);
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
    std::swap(found->completers[name], completer);
    return true;
  });
  return *this;
}

Server& Server::mount(const Server& other, std::string_view prefix) {
  const ServerDefinition mounted = other.state_->definition();
  std::vector<Change::Kind> kinds;
  if (!mounted.tools.empty()) kinds.push_back(Change::Kind::tools);
  if (!mounted.prompts.empty()) kinds.push_back(Change::Kind::prompts);
  if (!mounted.resources.empty() || !mounted.resource_templates.empty()) {
    kinds.push_back(Change::Kind::resources);
  }
  // Destroyed after the change, as what it replaces is.
  ServerDefinition next;
  state_->change(kinds, [&](ServerDefinition& definition) {
    // A copy, so that an exception changes nothing.
    next = definition;
    sluice::mount(next, mounted, prefix);
    std::swap(definition, next);
    return true;
  });
  ServerState::connect(other.state_, state_);
  return *this;
}

bool Server::remove_tool(std::string_view name) {
  return take(*state_, &ServerDefinition::tools, &Tool::name, name, Change::Kind::tools);
}

bool Server::remove_resource(std::string_view uri) {
  std::vector<Resource> removed;
  const bool was_skill =
      state_->change({Change::Kind::resources}, [&](ServerDefinition& definition) {
        const Result<bool> withdrawn = withdraw_skill(definition, uri, removed);
        if (!withdrawn) throw std::invalid_argument(withdrawn.error().message);
        return *withdrawn;
      });
  return was_skill ||
         take(*state_, &ServerDefinition::resources, &Resource::uri, uri, Change::Kind::resources);
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
  if (!middleware) throw std::invalid_argument("a middleware is empty: give use() a function");
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

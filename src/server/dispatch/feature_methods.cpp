#include "server/dispatch/feature_methods.hpp"

#include <algorithm>
#include <utility>

#include "protocol/error_codes.hpp"
#include "rpc/error_codes.hpp"
#include "server/calls/pending_request.hpp"
#include "server/catalog/content_json.hpp"
#include "server/catalog/result_writer.hpp"

namespace sluice {
namespace {

std::unexpected<Error> invalid(std::string why) {
  return fail(kInvalidParams, "Invalid params: " + std::move(why));
}

std::unexpected<Error> unknown_resource(std::string_view uri, const Revision& revision) {
  std::string data = R"({"uri":)";
  append_json_string(data, uri);
  data.push_back('}');
  return fail(revision.unknown_resource, "Resource not found: " + std::string(uri),
              std::move(data));
}

Result<std::string> string_at(const json::object& object, std::string_view key,
                              std::string_view path) {
  const json::value* const value = object.if_contains(key);
  if (value == nullptr || !value->is_string())
    return invalid(std::string(path) + " must be a string");
  return std::string(value->get_string());
}

/// The object at `key`, or an empty one if there is none.
Result<const json::object*> object_at(const json::object& object, std::string_view key,
                                      std::string_view path) {
  static const json::object kNone;
  const json::value* const value = object.if_contains(key);
  if (value == nullptr) return &kNone;
  if (!value->is_object()) return invalid(std::string(path) + " must be an object");
  return &value->get_object();
}

/// The members of the object at `key`, all of them strings.
Result<UriTemplate::Variables> strings_at(const json::object& object, std::string_view key,
                                          const std::string& path) {
  const Result<const json::object*> members = object_at(object, key, path);
  if (!members) return std::unexpected(members.error());
  UriTemplate::Variables out;
  for (const auto& [name, value] : **members) {
    if (!value.is_string()) return invalid(path + "." + std::string(name) + " must be a string");
    out.emplace(name, value.get_string());
  }
  return out;
}

template <class Out, class Members>
UnwrittenMembers unwritten(Members members, Out out) {
  const std::size_t bytes = members.size_of(out);
  return {bytes, [members = std::move(members), out = std::move(out)] { return members(out); }};
}

/// Calls `handler`. `members` turns its answer into the members of a result.
template <class In, class Out, class Members>
Result<FeatureAnswer> ask(const FeatureHandler<In, Out>& handler, In in, Members members) {
  using Asked = FeatureHandler<In, Out>;
  if (const auto* const immediate = std::get_if<typename Asked::Immediate>(&handler.answer)) {
    Result<Out> out = (*immediate)(in);
    if (!out) return std::unexpected(members.error(out.error()));
    if (members.size_of(*out) <= LongResult::kLong) return members(*out);
    return unwritten(std::move(members), *std::move(out));
  }
  return [deferred = std::get<typename Asked::Deferred>(handler.answer), in = std::move(in),
          members = std::move(members)](std::shared_ptr<PendingRequest> request) -> Result<void> {
    return deferred(in, std::move(request), [members](PendingRequest& asker, Result<Out> out) {
      if (!out) {
        asker.fail(members.error(out.error()));
      } else {
        asker.complete(unwritten(members, *std::move(out)));
      }
    });
  };
}

/// The approximate size of a `_meta`, in bytes.
std::size_t size_of_meta(const json::object& meta) {
  return meta.empty() ? 0 : LongResult::size_of({.meta = meta});
}

/// The members of a ReadResourceResult.
struct ReadMembers {
  std::string uri;
  const Revision* revision;
  Caching caching = {};

  [[nodiscard]] Error error(const Error& error) const {
    return error.code == kResourceNotFound ? unknown_resource(uri, *revision).error() : error;
  }
  [[nodiscard]] static std::size_t size_of(const ResourceResult& result) {
    std::size_t bytes = size_of_meta(result.meta);
    for (const ResourceContents& each : result.contents) {
      bytes += each.data.size() + size_of_meta(each.meta);
    }
    return bytes;
  }
  ResultMembers operator()(const ResourceResult& result) const {
    std::string out = R"("contents":[)";
    for (const ResourceContents& each : result.contents) {
      if (out.back() != '[') out.push_back(',');
      append_resource_contents(out, each);
    }
    out.push_back(']');
    append_caching(out, result.caching.value_or(caching), *revision);
    return {std::move(out), meta_members(result.meta)};
  }
};

/// The members of a GetPromptResult. `description` is the prompt's own.
struct PromptMembers {
  std::string description;
  const Revision* revision;

  [[nodiscard]] static Error error(const Error& error) { return error; }
  [[nodiscard]] static std::size_t size_of(const PromptResult& made) {
    std::size_t bytes = made.description.size() + size_of_meta(made.meta);
    for (const PromptMessage& message : made.messages) bytes += message.content.size();
    return bytes;
  }
  ResultMembers operator()(const PromptResult& made) const {
    std::string out;
    const std::string& text = made.description.empty() ? description : made.description;
    if (!text.empty()) {
      out.append(R"("description":)");
      append_json_string(out, text);
      out.push_back(',');
    }
    out.append(R"("messages":[)");
    for (const PromptMessage& message : made.messages) {
      if (out.back() != '[') out.push_back(',');
      const bool user = message.role == PromptMessage::Role::user;
      out.append(user ? R"({"role":"user","content":)" : R"({"role":"assistant","content":)");
      message.content.append_to(out, *revision);
      out.push_back('}');
    }
    out.push_back(']');
    return {std::move(out), meta_members(made.meta)};
  }
};

/// The members of a CompleteResult.
struct CompletionMembers {
  [[nodiscard]] static Error error(const Error& error) { return error; }
  [[nodiscard]] static std::size_t size_of(const ArgumentCompletion& found) {
    std::size_t bytes = 0;
    for (const std::string& value : found.values) bytes += value.size();
    return bytes;
  }
  ResultMembers operator()(const ArgumentCompletion& found) const {
    const std::size_t sent = std::min(found.values.size(), ArgumentCompletion::kMaxValues);
    std::string out = R"("completion":{"values":[)";
    for (std::size_t i = 0; i < sent; ++i) {
      if (i > 0) out.push_back(',');
      append_json_string(out, found.values[i]);
    }
    out.push_back(']');
    if (found.total || sent < found.values.size()) {
      out.append(R"(,"total":)");
      append_number(out, found.total.value_or(found.values.size()));
    }
    const bool more =
        found.has_more || sent < found.values.size() || found.total.value_or(0) > sent;
    out.append(more ? R"(,"hasMore":true})" : R"(,"hasMore":false})");
    return out;
  }
};

using Completer = FeatureHandler<TypedArgument, ArgumentCompletion>;

const Completer* completer_of(const Completers& completers, std::string_view argument) {
  const auto found = completers.find(argument);
  return found == completers.end() ? nullptr : &found->second;
}

std::unexpected<Error> no_argument(std::string_view argument) {
  return invalid("argument.name: there is no '" + std::string(argument) + "'");
}

/// The completer of the argument, or null if it has none.
Result<const Completer*> find_completer(const FeatureIndex& index, const json::object& ref,
                                        std::string_view argument, TurnWork& work) {
  const Result<std::string> type = string_at(ref, "type", "ref.type");
  if (!type) return std::unexpected(type.error());
  if (*type == "ref/prompt") {
    const Result<std::string> name = string_at(ref, "name", "ref.name");
    if (!name) return std::unexpected(name.error());
    const Prompt* const prompt = index.find_prompt(*name);
    if (prompt == nullptr) return fail(kInvalidParams, "Unknown prompt: " + *name);
    if (std::ranges::find(prompt->arguments, argument, &PromptArgument::name) ==
        prompt->arguments.end()) {
      return no_argument(argument);
    }
    return completer_of(prompt->completers, argument);
  }
  if (*type == "ref/resource") {
    const Result<std::string> uri = string_at(ref, "uri", "ref.uri");
    if (!uri) return std::unexpected(uri.error());
    const ResourceTemplate* resource = index.find_template(*uri);
    if (resource == nullptr) resource = index.match(*uri, work).resource;
    if (resource == nullptr) return fail(kInvalidParams, "Unknown resource template: " + *uri);
    if (!resource->uri.has_variable(argument)) return no_argument(argument);
    return completer_of(resource->completers, argument);
  }
  return invalid("ref.type must be \"ref/prompt\" or \"ref/resource\"");
}

}  // namespace

Result<std::string> known_resource(const FeatureIndex& index, const json::object& params,
                                   const Revision& revision, TurnWork& work) {
  Result<std::string> uri = string_at(params, "uri", "uri");
  if (!uri || index.find_resource(*uri) != nullptr) return uri;
  if (index.match(*uri, work).resource != nullptr) return uri;
  return unknown_resource(*uri, revision);
}

Result<FeatureAnswer> read_resource(const FeatureIndex& index, const json::object& params,
                                    const Revision& revision, TurnWork& work) {
  Result<std::string> uri = string_at(params, "uri", "uri");
  if (!uri) return std::unexpected(uri.error());
  ReadMembers members{*uri, &revision};
  if (const Resource* const resource = index.find_resource(*uri)) {
    members.caching = resource->caching;
    return ask(resource->read, std::move(*uri), std::move(members));
  }
  FeatureIndex::Match match = index.match(*uri, work);
  if (match.resource == nullptr) return unknown_resource(*uri, revision);
  members.caching = match.resource->caching;
  return ask(match.resource->read, ResourceMatch{std::move(*uri), std::move(match.variables)},
             std::move(members));
}

Result<FeatureAnswer> get_prompt(const FeatureIndex& index, const json::object& params,
                                 const Revision& revision) {
  const Result<std::string> name = string_at(params, "name", "name");
  if (!name) return std::unexpected(name.error());
  const Prompt* const prompt = index.find_prompt(*name);
  if (prompt == nullptr) return fail(kInvalidParams, "Unknown prompt: " + *name);
  Result<UriTemplate::Variables> arguments = strings_at(params, "arguments", "arguments");
  if (!arguments) return std::unexpected(arguments.error());
  for (const PromptArgument& argument : prompt->arguments) {
    if (argument.required && !arguments->contains(argument.name)) {
      return invalid("arguments." + argument.name + " is required");
    }
  }
  return ask(prompt->get, std::move(*arguments), PromptMembers{prompt->description, &revision});
}

Result<FeatureAnswer> complete_argument(const FeatureIndex& index, const json::object& params,
                                        TurnWork& work) {
  const Result<const json::object*> ref = object_at(params, "ref", "ref");
  if (!ref) return std::unexpected(ref.error());
  const Result<const json::object*> argument = object_at(params, "argument", "argument");
  if (!argument) return std::unexpected(argument.error());
  Result<std::string> name = string_at(**argument, "name", "argument.name");
  if (!name) return std::unexpected(name.error());
  Result<std::string> value = string_at(**argument, "value", "argument.value");
  if (!value) return std::unexpected(value.error());
  const Result<const json::object*> context = object_at(params, "context", "context");
  if (!context) return std::unexpected(context.error());
  Result<UriTemplate::Variables> chosen = strings_at(**context, "arguments", "context.arguments");
  if (!chosen) return std::unexpected(chosen.error());
  const Result<const Completer*> completer = find_completer(index, **ref, *name, work);
  if (!completer) return std::unexpected(completer.error());
  if (*completer == nullptr) return CompletionMembers()({});
  return ask(**completer, TypedArgument{std::move(*name), std::move(*value), std::move(*chosen)},
             CompletionMembers());
}

Result<std::string> get_skill(const ServerDefinition& definition, const json::object& params) {
  const Result<std::string> uri = string_at(params, "uri", "uri");
  if (!uri) return uri;
  const auto found = std::ranges::find(definition.skills, *uri, &Skill::uri);
  if (found == definition.skills.end()) return fail(kInvalidParams, "Unknown skill: " + *uri);
  return R"("skill":)" + found->entry();
}

Result<std::string> read_directory(const ServerDefinition& definition, const json::object& params) {
  const Result<std::string> uri = string_at(params, "uri", "uri");
  if (!uri) return uri;
  if (params.contains("cursor")) return invalid("cursor is not one that this list has given");
  return read_skill_directory(definition, *uri);
}

}  // namespace sluice

#include "cli/targets/server_report.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/text/secrets.hpp"
#include "core/text/text.hpp"
#include "json/json.hpp"

namespace sluice {
namespace {

/// Whether what has this name on a command line is secret.
bool looks_secret(std::string_view option) {
  const std::string name = to_lower(option);
  return sounds_secret(option) || name.contains("auth") || name.contains("header");
}

/// An argument with one URL or several.
std::string masked_urls(std::string_view text) {
  std::string out;
  auto sign = text.find("://");
  while (true) {
    const auto next = text.find("://", sign + 3);
    if (next == std::string_view::npos) return out.append(masked_url(text));
    // Without a separator between them, as in a query, the one is a part of the other.
    const auto end = text.find_last_of(",;| ", next);
    if (end == std::string_view::npos || end < sign) {
      sign = next;
      continue;
    }
    out.append(masked_url(text.substr(0, end))).push_back(text[end]);
    text.remove_prefix(end + 1);
    sign = text.find("://");
  }
}

std::vector<std::string> masked_arguments(const std::vector<std::string>& arguments) {
  std::vector<std::string> out;
  bool hides_next = false;
  for (const std::string& argument : arguments) {
    const bool is_option = argument.starts_with('-');
    const auto sign = argument.find_first_of("=:");
    const bool is_hidden = hides_next && !argument.starts_with("--");
    // A value may begin with a dash, and behind a flag there may be another option.
    hides_next = is_option && sign == std::string::npos && looks_secret(argument);
    if (is_hidden || looks_like_secret(argument)) {
      out.emplace_back(kMask);
    } else if (sign != std::string::npos && looks_secret(argument.substr(0, sign))) {
      out.push_back(argument.substr(0, sign + 1).append(kMask));
    } else if (argument.contains("://")) {
      out.push_back(masked_urls(argument));
    } else {
      out.push_back(argument);
    }
  }
  return out;
}

json::array names_in(const NamedValues& values) {
  json::array out;
  for (const auto& [name, value] : values) out.emplace_back(name);
  return out;
}

std::string padded_name(std::string_view text, std::size_t width) {
  std::string out(text);
  out.resize(std::max(width, out.size()), ' ');
  return out;
}

json::object json_of(const FoundServers& found, const ServerConfig& server) {
  json::object out{{"name", server.name},
                   {"application", name_of(server.source.application).id},
                   {"scope", to_string(server.source.scope)},
                   {"file", server.source.path},
                   {"enabled", server.enabled},
                   {"clash", clashes(found, server.name)}};
  if (const auto* command = std::get_if<ConfiguredCommand>(&server.place)) {
    const auto arguments = masked_arguments(command->arguments);
    out["command"] = command->program;
    out["args"] = json::array(arguments.begin(), arguments.end());
    out["env"] = names_in(command->environment);
    if (!command->directory.empty()) out["cwd"] = command->directory;
  } else {
    const auto& remote = std::get<ConfiguredUrl>(server.place);
    out["url"] = masked_url(remote.url);
    out["transport"] = to_string(remote.transport);
    json::array headers = names_in(remote.headers);
    for (const HeaderFromVariable& one : remote.variable_headers) headers.emplace_back(one.header);
    out["headers"] = std::move(headers);
  }
  if (!server.refusal.empty()) out["refusal"] = server.refusal;
  return out;
}

/// What is to be known of a server besides its place.
std::vector<std::string> notes_of(const FoundServers& found, const ServerConfig& server) {
  std::vector<std::string> notes;
  if (!server.enabled) notes.emplace_back("switched off");
  if (!server.refusal.empty()) notes.push_back("not used: " + server.refusal);
  const std::string id(name_of(server.source.application).id);
  const NamedServer alone = find_server(found, server.name);
  const NamedServer qualified = find_server(found, id + "/" + server.name);
  if (!qualified.candidates.empty()) {
    notes.emplace_back(
        "a file of the project and another one differ; add the one that you mean with sluice mcp "
        "add");
  } else if (!alone.candidates.empty()) {
    notes.push_back("the name clashes; say " + id + "/" + server.name);
  } else if (alone.server != nullptr && !is_same_place(*alone.server, server) &&
             alone.server->source.application != server.source.application) {
    notes.push_back("the name alone means that of " +
                    std::string(name_of(alone.server->source.application).id) + "; say " + id +
                    "/" + server.name);
  }
  if (qualified.server != nullptr && qualified.server != &server) {
    notes.push_back("hidden by " + qualified.server->source.path);
  }
  return notes;
}

}  // namespace

std::string shown_path(std::string_view path, std::string_view home) {
  const bool below =
      !home.empty() && path.starts_with(home) && path.substr(home.size()).starts_with('/');
  return below ? "~" + std::string(path.substr(home.size())) : std::string(path);
}

std::string describe_place(const ConfiguredPlace& place) {
  std::string out;
  const auto append_names = [&](std::string_view what, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      out.append(&name == &names.front() ? "  (" + std::string(what) + ": " : ", ").append(name);
    }
    if (!names.empty()) out.push_back(')');
  };
  std::vector<std::string> names;
  if (const auto* command = std::get_if<ConfiguredCommand>(&place)) {
    out = "-- " + command->program;
    for (const std::string& argument : masked_arguments(command->arguments)) {
      out.append(" ").append(argument);
    }
    for (const auto& [name, value] : command->environment) names.push_back(name);
    append_names("env", names);
    return out;
  }
  const auto& remote = std::get<ConfiguredUrl>(place);
  out = masked_url(remote.url);
  for (const auto& [name, value] : remote.headers) names.push_back(name);
  for (const HeaderFromVariable& one : remote.variable_headers) names.push_back(one.header);
  append_names("headers", names);
  return out;
}

std::string describe_target(const Target& target) {
  if (!target.name.empty()) return target.name;
  if (const auto* const url = std::get_if<UrlTarget>(&target.place)) {
    return masked_url(url->url.to_string());
  }
  if (const auto* const socket = std::get_if<UnixTarget>(&target.place)) {
    const bool is_http = !socket->http_target.empty();
    return (is_http ? "http+unix:" : "unix:") + socket->path;
  }
  const auto& arguments = std::get<CommandTarget>(target.place).arguments;
  return describe_place(ConfiguredCommand{.program = arguments.front(),
                                          .arguments = {arguments.begin() + 1, arguments.end()}});
}

std::string text_of_servers(const FoundServers& found, std::string_view home, const Style& style) {
  std::size_t name_width = 0;
  std::size_t id_width = 0;
  for (const ServerConfig& server : found.servers) {
    name_width = std::max(name_width, one_line(server.name).size());
    id_width = std::max(id_width, name_of(server.source.application).id.size());
  }
  constexpr std::size_t kGap = 2;
  constexpr std::size_t kWidest = 24;
  name_width = std::min(name_width, kWidest) + kGap;
  std::string out;
  for (const ServerConfig& server : found.servers) {
    out.append(style.bold()).append(padded_name(one_line(server.name), name_width));
    out.append(style.reset());
    out.append(padded_name(name_of(server.source.application).id, id_width + kGap));
    out.append(one_line(describe_place(server.place))).append("\n");
    out.append(name_width, ' ').append(style.dim());
    out.append(one_line(shown_path(server.source.path, home))).append(style.reset());
    for (const std::string& note : notes_of(found, server)) {
      out.append("; ").append(style.yellow()).append(one_line(note)).append(style.reset());
    }
    out.append("\n");
  }
  return out;
}

std::string json_of_servers(const FoundServers& found) {
  json::array servers;
  for (const ServerConfig& server : found.servers) servers.push_back(json_of(found, server));
  json::array warnings;
  for (const ConfigWarning& warning : found.warnings) warnings.emplace_back(warning.describe());
  return to_json(json::object{{"servers", std::move(servers)}, {"warnings", std::move(warnings)}}) +
         "\n";
}

}  // namespace sluice

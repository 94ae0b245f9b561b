#include "cli/targets/server_forms.hpp"

#include <algorithm>
#include <iterator>

#include "cli/options/config_file.hpp"
#include "cli/targets/lenient_json.hpp"
#include "cli/targets/server_entry.hpp"
#include "core/text/text.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

void warn(ParsedServers& out, const ServersFile& file, std::string key, std::string message) {
  out.warnings.push_back(
      {.file = file.path, .server = {}, .key = std::move(key), .message = std::move(message)});
}

void limit_warnings(const ServersFile& file, ParsedServers& out) {
  if (out.warnings.size() <= kMaxConfigWarnings) return;
  out.warnings.resize(kMaxConfigWarnings);
  out.warnings.back() = {
      .file = file.path, .server = {}, .key = {}, .message = "more of it is not understood"};
}

/// The object at `key` of `root`; null, with a warning if there is something else.
const json::object* section(const json::object& root, std::string_view key, const ServersFile& file,
                            ParsedServers& out) {
  const json::value* const value = root.if_contains(key);
  if (value == nullptr || value->is_object()) return object_at(root, key);
  warn(out, file, std::string(key), "must be an object; it is ignored");
  return nullptr;
}

/// The strings in the array at `key`; nothing if there is none.
std::optional<std::vector<std::string>> names_at(const json::object& object, std::string_view key) {
  const json::value* const value = object.if_contains(key);
  if (value == nullptr || !value->is_array()) return std::nullopt;
  std::vector<std::string> names;
  for (const json::value& name : value->get_array()) {
    if (name.is_string() && names.size() < kMaxServers) names.emplace_back(name.get_string());
  }
  return names;
}

void switch_off(ParsedServers& out, const std::optional<std::vector<std::string>>& names) {
  for (const std::string& name : names.value_or(std::vector<std::string>())) {
    out.switches.emplace_back(name, false);
  }
}

/// Adds the servers of `entries`, an object from names to their definitions.
void add_entries(const json::object& entries, const ServersFile& file,
                 const std::vector<ConfigInput>& inputs, ParsedServers& out) {
  for (const auto& [key, value] : entries) {
    const std::string name(key);
    const auto skip = [&](std::string message) {
      out.warnings.push_back({.file = file.path,
                              .server = name.substr(0, kMaxServerName),
                              .key = {},
                              .message = std::move(message)});
      limit_warnings(file, out);
    };
    if (out.servers.size() >= kMaxServers) {
      skip("a file has at most " + std::to_string(kMaxServers) + " servers; the rest is ignored");
      return;
    }
    if (name.empty() || name.size() > kMaxServerName) {
      skip("a name has 1 to " + std::to_string(kMaxServerName) + " bytes; it is ignored");
      continue;
    }
    if (!value.is_object()) {
      skip("must be an object; it is ignored");
      continue;
    }
    EntryReader reader(name, value.get_object(), file);
    if (auto server = reader.read()) {
      server->inputs = inputs;
      out.servers.push_back(*std::move(server));
    }
    if (const auto on = reader.switched()) out.switches.emplace_back(name, *on);
    std::ranges::move(reader.warnings(), std::back_inserter(out.warnings));
    limit_warnings(file, out);
  }
}

std::vector<ConfigInput> inputs_of(const json::object& root) {
  std::vector<ConfigInput> inputs;
  const json::value* const list = root.if_contains("inputs");
  if (list == nullptr || !list->is_array()) return inputs;
  for (const json::value& one : list->get_array()) {
    if (!one.is_object() || inputs.size() >= kMaxListed) continue;
    inputs.push_back({.id = std::string(text_at(one.get_object(), "id")),
                      .description = std::string(text_at(one.get_object(), "description"))});
  }
  return inputs;
}

/// Adds what ~/.claude.json has for the folder that the user is in: the working directory, or the
/// nearest folder above it in the same project.
void read_claude_project(const json::object& root, const ServersFile& file, ParsedServers& out) {
  const json::object* const projects = section(root, "projects", file, out);
  if (projects == nullptr) return;
  ServersFile local = file;
  local.scope = ConfigScope::local;
  local.workspace = file.directory;
  const json::object* found = nullptr;
  for (;;) {
    found = object_at(*projects, local.workspace);
    const auto slash = local.workspace.rfind('/');
    if (found != nullptr || local.workspace == file.workspace || slash == std::string::npos) break;
    local.workspace.resize(slash);
  }
  if (found == nullptr) return;
  if (const auto* servers = section(*found, "mcpServers", file, out)) {
    add_entries(*servers, local, {}, out);
  }
  switch_off(out, names_at(*found, "disabledMcpServers"));
  switch_off(out, names_at(*found, "disabledMcpjsonServers"));
}

void read_claude(const json::object& root, const ServersFile& file, ParsedServers& out) {
  if (const auto* servers = section(root, "mcpServers", file, out)) {
    add_entries(*servers, file, {}, out);
  }
  if (file.scope == ConfigScope::user) read_claude_project(root, file, out);
}

void read_gemini(const json::object& root, const ServersFile& file, ParsedServers& out) {
  if (const auto* servers = section(root, "mcpServers", file, out)) {
    add_entries(*servers, file, {}, out);
  }
  if (const auto* all = section(root, "mcp", file, out)) {
    switch_off(out, names_at(*all, "excluded"));
    out.allowed = names_at(*all, "allowed");
  }
}

void read_opencode(const json::object& root, const ServersFile& file, ParsedServers& out) {
  const json::object* servers = section(root, "mcp", file, out);
  if (servers == nullptr) return;
  // A server of that name has a type, which is a string; the second version has servers there.
  if (const auto* second = object_at(*servers, "servers");
      second != nullptr && text_at(*second, "type").empty()) {
    servers = second;
  }
  add_entries(*servers, file, {}, out);
}

Result<json::value> parse_root(std::string_view text, const ServersFile& file) {
  switch (file.application) {
    case Application::codex:
      return parse_toml_as_json(text, file.path);
    case Application::cursor:
    case Application::vscode:
    case Application::opencode:
      return parse_config_json(text, JsonDialect::comments_and_commas, file.path);
    case Application::gemini:
      return parse_config_json(text, JsonDialect::comments, file.path);
    case Application::sluice:
    case Application::claude_code:
    case Application::claude_desktop:
      break;
  }
  return parse_config_json(text, JsonDialect::strict, file.path);
}

}  // namespace

Result<ParsedServers> parse_servers(std::string_view text, const ServersFile& file) {
  ParsedServers out;
  if (trim(text, " \t\r\n").empty()) return out;
  const auto root = parse_root(text, file);
  if (!root) return std::unexpected(root.error());
  if (!root->is_object()) {
    warn(out, file, {}, "must be an object; it is ignored");
    return out;
  }
  const json::object& top = root->get_object();
  const auto add = [&](std::string_view key, const std::vector<ConfigInput>& inputs) {
    if (const auto* servers = section(top, key, file, out)) {
      add_entries(*servers, file, inputs, out);
    }
  };
  switch (file.application) {
    case Application::claude_code:
      read_claude(top, file, out);
      break;
    case Application::vscode:
      add("servers", inputs_of(top));
      if (top.contains("mcpServers") && !top.contains("servers")) {
        warn(out, file, "mcpServers", "VS Code reads \"servers\"; it is ignored");
      }
      break;
    case Application::gemini:
      read_gemini(top, file, out);
      break;
    case Application::codex:
      add("mcp_servers", {});
      break;
    case Application::opencode:
      read_opencode(top, file, out);
      break;
    case Application::sluice:
    case Application::claude_desktop:
    case Application::cursor:
      add("mcpServers", {});
      break;
  }
  return out;
}

}  // namespace sluice

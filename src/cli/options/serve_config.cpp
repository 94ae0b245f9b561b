#include "cli/options/serve_config.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "cli/options/command_line.hpp"
#include "cli/options/config_file.hpp"
#include "cli/options/config_value.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/options/serve_settings.hpp"
#include "core/text/text.hpp"
#include "json/json.hpp"
#include "net/loop/address_kind.hpp"

namespace sluice {
namespace {

constexpr const char* kDefaultFile = "sluice.toml";

/// The values that were given, for an error message.
std::string quoted(const Setting& setting, const std::vector<std::string>& values) {
  if (setting.secret) return "a value";
  std::string out;
  for (const std::string& value : values)
    out.append(out.empty() ? "\"" : ", \"").append(value + '"');
  return out.empty() ? "nothing" : out;
}

Result<void> store(LoadedConfig& loaded, const Setting& setting,
                   const std::vector<std::string>& values, const std::string& where,
                   std::string origin) {
  const bool single = setting.kind != Setting::Kind::list;
  if ((single && values.size() != 1) || !setting.store(loaded.config, values)) {
    return fail(kExitUsage, where + ": " + quoted(setting, values) + " is not allowed here; give " +
                                setting.allowed);
  }
  loaded.origins.insert_or_assign(std::string(setting.key), std::move(origin));
  return {};
}

std::string known_keys(std::string_view key) {
  const auto dot = key.find('.');
  const std::string_view section = dot == std::string_view::npos ? "" : key.substr(0, dot);
  std::string keys;
  std::string sections;
  std::set<std::string_view> seen;
  for (const Setting& setting : serve_settings()) {
    const std::string_view own = section_of(setting);
    if (!own.empty() && seen.insert(own).second) {
      sections.append(" [").append(own).append("]");
    }
    if (own != section) continue;
    keys.append(keys.empty() ? "" : ", ");
    keys.append(setting.key.substr(own.empty() ? 0 : own.size() + 1));
  }
  if (keys.empty()) return "the sections are" + sections;
  if (section.empty()) return "keys allowed before the sections" + sections + ": " + keys;
  return "[" + std::string(section) + "] has the keys: " + keys;
}

Result<void> check_readable(const ConfigSources& sources, const std::string& path) {
  return sources.while_serving ? check_regular_file(path) : Result<void>();
}

Result<void> load_file(LoadedConfig& loaded, const ConfigSources& sources,
                       const std::string& path) {
  if (auto readable = check_readable(sources, path); !readable) return readable;
  auto values = read_config_file(path);
  if (!values) return std::unexpected(std::move(values.error()));
  for (auto& [key, value] : *values) {
    const Setting* setting = find_setting(key);
    if (setting == nullptr) {
      return fail(kExitUsage, value.origin + ": unknown key \"" + key + "\"; " + known_keys(key));
    }
    // A text that is not set is printed as "".
    if (!value.is_list && value.values.front().empty() && setting->show(ServeConfig{}).empty()) {
      continue;
    }
    if (value.is_list != (setting->kind == Setting::Kind::list)) {
      return fail(kExitUsage, value.origin + ": " + key + ": give " +
                                  (value.is_list ? "one value, " : "an array of ") +
                                  setting->allowed);
    }
    if (auto stored =
            store(loaded, *setting, value.values, value.origin + ": " + key, value.origin);
        !stored) {
      return stored;
    }
  }
  return {};
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (;;) {
    const auto comma = text.find(',', begin);
    parts.push_back(text.substr(begin, comma - begin));
    if (comma == std::string::npos) return parts;
    begin = comma + 1;
  }
}

Result<void> load_environment(LoadedConfig& loaded, const ConfigSources& sources) {
  for (const Setting& setting : serve_settings()) {
    const std::string name = environment_name(setting);
    const auto value = sources.environment(name);
    if (!value || value->empty()) continue;
    const auto values =
        setting.kind == Setting::Kind::list ? split_list(*value) : std::vector<std::string>{*value};
    if (auto stored = store(loaded, setting, values, name, name); !stored) return stored;
  }
  return {};
}

Result<void> load_flags(LoadedConfig& loaded, const ConfigSources& sources) {
  for (const auto& [key, values] : sources.flags) {
    const Setting* setting = find_setting(key);
    if (setting == nullptr) return fail(kExitUsage, "unknown setting \"" + key + "\"");
    const std::string flag(setting->flag);
    if (auto stored = store(loaded, *setting, values, flag, flag); !stored) return stored;
  }
  return {};
}

/// Loads one source with `load`, and updates whether a port is to be opened.
template <class Load>
Result<void> load_source(LoadedConfig& loaded, Load load) {
  std::map<std::string, std::string, std::less<>> before = std::exchange(loaded.origins, {});
  Result<void> done = load();
  const auto sets = [&](std::string_view key) { return loaded.origins.contains(key); };
  if (loaded.config.listen.empty()) loaded.origins.erase("listen");
  const bool sets_one_place = sets("host") || sets("port");
  if (const auto listen = loaded.origins.find("listen"); done && listen != loaded.origins.end()) {
    const std::string origin = listen->second;
    if (sets_one_place) {
      return fail(kExitUsage, origin + ": this is host and port in one; give either it or them");
    }
    loaded.origins.insert({{"host", origin}, {"port", origin}});
  }
  if (sets_one_place) loaded.config.listen.clear();
  if (sets_one_place || sets("listen")) {
    loaded.config.tcp = true;
  } else if (sets("unix") || sets("stdio")) {
    loaded.config.tcp = loaded.config.unix_path.empty() && !loaded.config.stdio;
  }
  loaded.origins.merge(before);
  return done;
}

/// Adds the keys in the API key file to those given directly.
Result<void> load_api_key_file(ServeConfig::Access& access, const ConfigSources& sources) {
  if (access.api_key_file.empty()) return {};
  if (auto readable = check_readable(sources, access.api_key_file); !readable) return readable;
  constexpr std::size_t kMaxFile = std::size_t{4} << 20U;
  const auto text = read_small_file(access.api_key_file, kMaxFile);
  if (!text) return std::unexpected(text.error());
  std::set<std::string> names;
  for (const ApiKey& key : access.api_keys) names.insert(key.name);
  const std::size_t given_directly = access.api_keys.size();
  std::string_view rest = *text;
  for (int line_number = 1; !rest.empty(); ++line_number) {
    const auto end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = trim(rest.substr(0, end), " \t\r");
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty() || line.front() == '#') continue;
    auto key = parse_api_key(line);
    if (!key || !names.insert(key->name).second) {
      return fail(kExitUsage, access.api_key_file + ":" + std::to_string(line_number) + ": give " +
                                  find_setting("access.api_keys")->allowed);
    }
    access.api_keys.push_back(*std::move(key));
  }
  // Whoever names a key file wants keys to be required. With an empty file everybody could call.
  if (access.api_keys.size() == given_directly) {
    return fail(kExitUsage, access.api_key_file + ": there is no key in this file; give " +
                                find_setting("access.api_keys")->allowed);
  }
  return {};
}

void append_toml_string(std::string& out, std::string_view text) {
  // TOML's basic strings have the same escapes as JSON, but U+007F needs one.
  std::string json;
  append_json_string(json, text);
  for (const char c : json) c == '\x7F' ? out.append("\\u007F") : out.append(1, c);
}

/// Appends the part of a setting after "key = ".
void append_value(std::string& out, const Setting& setting,
                  const std::vector<std::string>& values) {
  switch (setting.kind) {
    case Setting::Kind::number:
    case Setting::Kind::flag:
      out.append(values.front());
      return;
    case Setting::Kind::text:
      append_toml_string(out, values.empty() ? std::string_view() : values.front());
      return;
    case Setting::Kind::list:
      out.push_back('[');
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (i > 0) out.append(", ");
        append_toml_string(out, values[i]);
      }
      out.push_back(']');
      return;
  }
}

/// Calls `each`, which may append lines, for every setting, and writes a header before the lines of
/// each section.
template <class Each>
std::string by_section(Each&& each) {
  std::string out;
  std::string_view section;
  for (const Setting& setting : serve_settings()) {
    const std::string_view own = section_of(setting);
    std::string lines;
    each(lines, setting, setting.key.substr(own.empty() ? 0 : own.size() + 1));
    if (lines.empty()) continue;
    if (own != section) {
      section = own;
      if (!out.empty()) out.push_back('\n');
      out.append("[").append(section).append("]\n");
    }
    out.append(lines);
  }
  return out;
}

std::string toml_of(const LoadedConfig& loaded, bool with_defaults) {
  return by_section([&](std::string& out, const Setting& setting, std::string_view name) {
    if (setting.is_used && !setting.is_used(loaded.config)) return;
    const auto origin = loaded.origins.find(setting.key);
    const bool has_origin = origin != loaded.origins.end();
    if (!has_origin && !with_defaults) return;
    out.append(name).append(" = ");
    append_value(out, setting, setting.show(loaded.config));
    if (has_origin) out.append("  # ").append(origin->second);
    out.push_back('\n');
  });
}

/// The heading of a section's options in the help.
std::string group_name(std::string_view section) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kNames = {
      {{"", "Server"},
       {"engine", "Model"},
       {"streams", "Streams"},
       {"calls", "Calls of tools"},
       {"sessions", "Sessions"},
       {"tasks", "Tasks"},
       {"http", "Connections"},
       {"access", "Access"},
       {"log", "Log"}}};
  const auto* const found =
      std::ranges::find(kNames, section, [](const auto& name) { return name.first; });
  return std::string(found == kNames.end() ? section : found->second);
}

std::string default_text(const Setting& setting) {
  std::string out;
  for (const std::string& value : setting.show(ServeConfig{})) {
    out.append(out.empty() ? "" : ",").append(value);
  }
  return out;
}

void add_options(Subcommand& command, SettingValues& flags, bool is_listed,
                 bool (*is_taken)(const Setting& setting)) {
  for (const Setting& setting : serve_settings()) {
    if (!is_taken(setting)) continue;
    OptionHelp help{.text = std::string(setting.help),
                    .operand = setting.operand,
                    .group = group_name(section_of(setting)),
                    .is_listed = is_listed};
    help.text.append(". ").append(environment_name(setting));
    if (const std::string value = default_text(setting); !value.empty()) {
      help.text.append(", default ").append(value);
    }
    const auto receive = [&flags, &setting](const std::vector<std::string>& values) {
      flags.insert_or_assign(std::string(setting.key), values);
    };
    const std::string name(setting.flag);
    if (setting.kind == Setting::Kind::flag) {
      command.add_flag(name, [receive](bool on) { receive({on ? "true" : "false"}); }, help);
    } else {
      command.add_repeatable(name, setting.kind == Setting::Kind::list ? Keep::all : Keep::last,
                             receive, help);
    }
  }
}

}  // namespace

Result<LoadedConfig> load_serve_config(const ConfigSources& sources) {
  LoadedConfig loaded;
  std::error_code ignored;
  std::optional<std::string> file = sources.file;
  if (!file) file = sources.environment("SLUICE_CONFIG");
  if (!file && std::filesystem::exists(kDefaultFile, ignored)) file = kDefaultFile;

  Result<void> step;
  if (file && !file->empty())
    step = load_source(loaded, [&] { return load_file(loaded, sources, *file); });
  if (step) step = load_source(loaded, [&] { return load_environment(loaded, sources); });
  if (step) step = load_source(loaded, [&] { return load_flags(loaded, sources); });
  if (step) step = load_api_key_file(loaded.config.access, sources);
  if (step) step = check_readable(sources, loaded.config.tls_certificate);
  if (step) step = check_readable(sources, loaded.config.tls_key);
  if (step) step = check_together(loaded.config);
  if (!step) return std::unexpected(std::move(step.error()));
  return loaded;
}

Result<void> check_together(const ServeConfig& config) {
  if (config.tls_certificate.empty() != config.tls_key.empty()) {
    return fail(kExitUsage, "--tls-cert and --tls-key: give both or neither");
  }
  if (config.streams.max_bytes > config.streams.max_total_bytes) {
    return fail(kExitUsage, "--max-stream-bytes: " + format_size(config.streams.max_bytes) +
                                " is more than --max-total-bytes, " +
                                format_size(config.streams.max_total_bytes));
  }
  // A growing buffer takes up to twice the size of its contents.
  if (config.http.max_body > config.http.max_total_buffers / 2) {
    return fail(kExitUsage, "--max-body: " + format_size(config.http.max_body) +
                                " is more than half of --max-total-buffers, " +
                                format_size(config.http.max_total_buffers));
  }
  const std::uint64_t context = config.engine.context;
  if (context * config.engine.sequences() > std::numeric_limits<std::int32_t>::max()) {
    return fail(kExitUsage, "--context: " + std::to_string(context) + " tokens for each of " +
                                std::to_string(config.engine.sequences()) +
                                " --slots are too many; use fewer of either");
  }
  std::map<std::string_view, std::string_view> names;
  for (const ApiKey& key : config.access.api_keys) {
    const auto [known, is_new] = names.emplace(key.key, key.name);
    if (!is_new) {
      return fail(kExitUsage, "--api-key: " + std::string(known->second) + " and " + key.name +
                                  " have the same key; give each a key of its own");
    }
  }
  for (const std::string& name : config.access.operators) {
    if (std::ranges::find(config.access.api_keys, name, &ApiKey::name) !=
        config.access.api_keys.end()) {
      continue;
    }
    return fail(kExitUsage, "--operator: there is no API key named " + name +
                                "; give one with --api-key " + name + "=KEY or --api-key-file");
  }
  if (config.legacy_ports) {
    if (!config.access.api_keys.empty()) {
      return fail(
          kExitUsage,
          "--legacy-ports: its clients have no way to give a key, so it cannot be used with "
          "API keys; serve such clients with --unix, whose permissions say who may connect");
    }
    if (!config.tls_certificate.empty() && !is_this_machine(config.legacy_listen.host)) {
      return fail(kExitUsage, "--legacy-listen: " + to_text(config.legacy_listen) +
                                  " would not be encrypted, unlike the rest of a server with "
                                  "--tls-cert; listen on 127.0.0.1");
    }
  }
  // The default gives way to a lower limit.
  if (config.tasks.ttl > config.tasks.max_ttl && config.tasks.ttl != ServeConfig().tasks.ttl) {
    return fail(kExitUsage, "--task-ttl: " + format_duration(config.tasks.ttl) +
                                " is more than --max-task-ttl, " +
                                format_duration(config.tasks.max_ttl));
  }
  return {};
}

std::vector<HostPort> listening_places(const ServeConfig& config) {
  if (!config.tcp) return {};
  if (!config.listen.empty()) return config.listen;
  return {{.host = config.host, .port = config.port}};
}

void add_serve_options(Subcommand& command, SettingValues& flags) {
  add_options(command, flags, true, [](const Setting&) { return true; });
}

void add_unlisted_serve_options(Subcommand& command, SettingValues& flags) {
  add_options(command, flags, false, [](const Setting&) { return true; });
}

void add_engine_options(Subcommand& command, SettingValues& flags) {
  add_options(command, flags, true,
              [](const Setting& setting) { return section_of(setting) == "engine"; });
}

void add_listening_options(Subcommand& command, SettingValues& flags) {
  add_options(command, flags, true, [](const Setting& setting) {
    const std::string_view section = section_of(setting);
    return section != "engine" && setting.key != "threads" && !setting.key.starts_with("legacy_");
  });
}

std::string print_config(const LoadedConfig& loaded) {
  return toml_of(loaded, true);
}

std::string print_settings(const LoadedConfig& loaded) {
  return toml_of(loaded, false);
}

std::string example_config() {
  return "# The settings of `sluice serve` with their defaults. They are read from ./sluice.toml, "
         "or from\n# the file given with --config. The flag and the SLUICE_* variable named with "
         "each setting win over\n# this file.\n\n" +
         by_section([](std::string& out, const Setting& setting, std::string_view name) {
           out.append("# ").append(setting.help).append(".\n# (").append(setting.flag);
           out.append(", ").append(environment_name(setting)).append(")\n# ");
           out.append(name).append(" = ");
           append_value(out, setting, setting.show(ServeConfig{}));
           out.append("\n");
         });
}

}  // namespace sluice

#include "cli/targets/found_servers.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "cli/targets/server_forms.hpp"
#include "cli/targets/variables.hpp"
#include "core/text/text.hpp"

namespace sluice {
namespace {

/// What the files of one application say, gathered from the least to the most important one.
class ApplicationServers {
 public:
  void add(ParsedServers parsed, const std::string& distrust) {
    std::map<ConfigScope, std::vector<ServerConfig>> scopes;
    for (ServerConfig& server : parsed.servers) {
      if (!distrust.empty() && server.refusal.empty() && needs_trust(server)) {
        server.refusal = distrust;
      }
      scopes[server.source.scope].push_back(std::move(server));
    }
    for (auto& [scope, servers] : scopes) groups_.emplace(scope, std::move(servers));
    for (auto& [name, on] : parsed.switches) switches_[name] = on;
    if (parsed.allowed) allowed_ = std::move(parsed.allowed);
  }

  /// The servers, from the most to the least important.
  std::vector<ServerConfig> take() {
    std::vector<ServerConfig> out;
    for (auto group = groups_.rbegin(); group != groups_.rend(); ++group) {
      for (ServerConfig& server : group->second) {
        if (const auto found = switches_.find(server.name); found != switches_.end()) {
          server.enabled = found->second;
        }
        if (allowed_ && std::ranges::find(*allowed_, server.name) == allowed_->end()) {
          server.enabled = false;
        }
        out.push_back(std::move(server));
      }
    }
    return out;
  }

 private:
  static bool needs_trust(const ServerConfig& server) {
    return std::holds_alternative<ConfiguredCommand>(server.place) || has_variables(server);
  }

  /// The servers of a file and scope. Those of a scope are in the order in which they came.
  std::multimap<ConfigScope, std::vector<ServerConfig>> groups_;
  std::map<std::string, bool, std::less<>> switches_;
  std::optional<std::vector<std::string>> allowed_;
};

/// The most important server of that name that an application has. A project's file may come with
/// a repository, so it must not replace what another file of the application says.
NamedServer server_of(const FoundServers& found, Application application, std::string_view name) {
  std::vector<const ServerConfig*> servers = found.named(name);
  std::erase_if(servers, [application](const ServerConfig* one) {
    return one->source.application != application;
  });
  if (servers.empty()) return {};
  const ServerConfig* const first = servers.front();
  const auto replaced = std::ranges::find_if(servers, [first](const ServerConfig* one) {
    return one->source.scope != ConfigScope::project && !is_same_place(*first, *one);
  });
  if (first->source.scope == ConfigScope::project && replaced != servers.end()) {
    return {.server = nullptr, .candidates = {first, *replaced}};
  }
  return {.server = first, .candidates = {}};
}

}  // namespace

std::vector<const ServerConfig*> FoundServers::named(std::string_view name) const {
  std::vector<const ServerConfig*> out;
  for (const ServerConfig& server : servers) {
    if (server.name == name) out.push_back(&server);
  }
  return out;
}

std::vector<std::string> FoundServers::names() const {
  std::set<std::string> out;
  for (const ServerConfig& server : servers) out.insert(server.name);
  return {out.begin(), out.end()};
}

bool is_same_place(const ServerConfig& one, const ServerConfig& other) {
  // The same text means different things to applications with different variables.
  const bool same_rules = one.source.application == other.source.application;
  const bool plain = !has_variables(one) && !has_variables(other);
  return one.place == other.place && (same_rules || plain);
}

NamedServer find_server(const FoundServers& found, std::string_view name) {
  if (const auto slash = name.find('/'); slash != std::string_view::npos) {
    const auto* const qualifier =
        std::ranges::find(kApplications, name.substr(0, slash), &ApplicationName::id);
    if (qualifier != kApplications.end()) {
      return server_of(found, qualifier->application, name.substr(slash + 1));
    }
  }
  const std::vector<const ServerConfig*> candidates = found.named(name);
  if (candidates.empty()) return {};
  const ServerConfig* const first = candidates.front();
  const bool is_own = first->source.application == Application::sluice;
  const bool is_one = std::ranges::all_of(
      candidates, [&](const ServerConfig* other) { return is_same_place(*first, *other); });
  if (is_own) return {.server = first, .candidates = {}};
  if (is_one) {
    const auto usable = std::ranges::find_if(
        candidates, [](const ServerConfig* one) { return one->refusal.empty(); });
    return {.server = usable == candidates.end() ? first : *usable, .candidates = {}};
  }
  NamedServer out;
  for (const ServerConfig* const server : candidates) {
    const auto same_application = [&](const ServerConfig* other) {
      return other->source.application == server->source.application;
    };
    if (std::ranges::none_of(out.candidates, same_application)) out.candidates.push_back(server);
  }
  if (out.candidates.size() > 1) return out;
  return server_of(found, first->source.application, name);
}

bool clashes(const FoundServers& found, std::string_view name) {
  return !find_server(found, name).candidates.empty();
}

FoundServers find_servers(const std::vector<ServersFile>& places, const ReadConfigFile& read) {
  FoundServers out;
  std::map<Application, ApplicationServers> applications;
  const auto warn = [&](const ServersFile& place, std::string_view message) {
    // "FILE: REASON" or "FILE:LINE: REASON".
    if (message.starts_with(place.path)) message.remove_prefix(place.path.size());
    message.remove_prefix(std::min(message.find_first_not_of(": "), message.size()));
    const bool has_line = !message.empty() && is_digit(message.front());
    out.warnings.push_back({.file = place.path,
                            .server = {},
                            .key = {},
                            .message = (has_line ? "line " : "") + std::string(message)});
  };
  for (const ServersFile& place : places) {
    auto content = read(place.path);
    if (!content) {
      warn(place, content.error().message);
      continue;
    }
    if (!*content) continue;
    auto parsed = parse_servers((*content)->text, place);
    if (!parsed) {
      warn(place, parsed.error().message);
      continue;
    }
    std::ranges::move(parsed->warnings, std::back_inserter(out.warnings));
    applications[place.application].add(*std::move(parsed), (*content)->distrust);
  }
  for (const ApplicationName& one : kApplications) {
    const auto found = applications.find(one.application);
    if (found == applications.end()) continue;
    std::ranges::move(found->second.take(), std::back_inserter(out.servers));
  }
  return out;
}

}  // namespace sluice

#include "cli/targets/target.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

#include "cli/options/exit_code.hpp"
#include "cli/options/suggestion.hpp"
#include "core/text/secrets.hpp"
#include "core/text/text.hpp"

namespace sluice {
namespace {

constexpr std::string_view kTargetForms =
    "a target is a URL (http, https, ws, wss), a socket (unix:PATH, http+unix:PATH), a command "
    "after --, a name that `sluice servers` lists, or @ and a name that `sluice session list` "
    "lists";

/// Of sockets.
constexpr std::string_view kDefaultEndpoint = "/mcp";

std::string scheme_of(std::string_view text) {
  const auto colon = text.find(':');
  return colon == std::string_view::npos ? std::string() : to_lower(text.substr(0, colon));
}

Result<TargetPlace> parse_socket(std::string_view rest, bool is_http) {
  UnixTarget out;
  const auto hash = rest.find('#');
  std::string_view path = rest.substr(0, hash);
  // "unix:///run/x" is "unix:/run/x" (RFC 8089, section 2, has the same for files).
  if (path.starts_with("//")) path.remove_prefix(2);
  out.path = path;
  if (is_http) {
    out.http_target = hash == std::string_view::npos ? kDefaultEndpoint : rest.substr(hash + 1);
    if (!out.http_target.starts_with('/')) out.http_target.insert(0, 1, '/');
    const auto is_bad = [](char c) { return c <= ' ' || !is_ascii(c) || c == '\x7f'; };
    if (std::ranges::any_of(out.http_target, is_bad)) {
      return fail(kExitUsage,
                  "what follows # is the path of HTTP requests: encode spaces and "
                  "other characters as in a URL");
    }
  } else if (hash != std::string_view::npos) {
    return fail(kExitUsage, "unix: has messages as lines and no #; http+unix: has HTTP");
  }
  if (out.path.empty() || out.path.size() > kMaxSocketPath) {
    return fail(kExitUsage,
                "the path of a socket has 1 to " + std::to_string(kMaxSocketPath) + " bytes");
  }
  return out;
}

/// Appends an explanation of the names that there are.
std::string with_names(std::string message, std::string_view word, const FoundServers& found) {
  std::vector<std::string> candidates = found.names();
  for (const ServerConfig& server : found.servers) {
    candidates.push_back(std::string(name_of(server.source.application).id) + "/" + server.name);
  }
  if (const auto meant = suggestion(word, candidates); !meant.empty()) {
    return message.append("; did you mean ").append(meant).append("?");
  }
  return message.append("; ").append(kTargetForms);
}

Result<const ServerConfig*> named_server(const std::string& word, const FoundServers& found) {
  const NamedServer named = find_server(found, word);
  if (named.server != nullptr) return named.server;
  if (named.candidates.empty()) {
    return fail(kExitUsage, with_names("there is no server " + masked_word(word), word, found));
  }
  const ServerConfig& first = *named.candidates.front();
  const ServerConfig& last = *named.candidates.back();
  if (first.source.application == last.source.application) {
    return fail(kExitUsage, first.source.path + " of this project has another server " +
                                first.name + " than " + last.source.path +
                                "; add the one that you mean to your own file with `sluice mcp "
                                "add`");
  }
  std::string message = "the files have different servers of the name " + word + "; say which: ";
  for (const ServerConfig* const one : named.candidates) {
    if (one != named.candidates.front()) message.append(", ");
    message.append(name_of(one->source.application).id).append("/").append(word);
    message.append(" (").append(one->source.path).append(")");
  }
  return fail(kExitUsage, std::move(message));
}

Result<Target> target_of(const ServerConfig& config, const VariableSources& sources) {
  if (!config.refusal.empty()) {
    return fail(kExitUsage,
                config.source.path + ": server " + config.name + " is not used: " + config.refusal);
  }
  auto expanded = expand_variables(config, sources);
  if (!expanded) return std::unexpected(std::move(expanded.error()));
  Target out{.place = CommandTarget(),
             .name = config.name,
             .startup_timeout = config.startup_timeout,
             .request_timeout = config.request_timeout,
             .warnings = std::move(expanded->warnings)};
  if (!config.enabled) {
    out.warnings.push_back(config.source.path + ": server " + config.name +
                           " is switched off there; it is used because you named it");
  }
  if (auto* command = std::get_if<ConfiguredCommand>(&expanded->server.place)) {
    CommandTarget place{.arguments = {std::move(command->program)},
                        .environment = std::move(command->environment),
                        .directory = std::move(command->directory)};
    std::ranges::move(command->arguments, std::back_inserter(place.arguments));
    out.place = std::move(place);
    return out;
  }
  auto& remote = std::get<ConfiguredUrl>(expanded->server.place);
  auto place = parse_address(remote.url, config.source.application != Application::sluice);
  if (!place) {
    return fail(kExitUsage,
                config.source.path + ": server " + config.name + ": url: " + place.error().message);
  }
  if (auto* url = std::get_if<UrlTarget>(&*place)) {
    url->headers = std::move(remote.headers);
    if (url->transport == TransportHint::any) url->transport = remote.transport;
  } else if (auto* socket = std::get_if<UnixTarget>(&*place)) {
    socket->headers = std::move(remote.headers);
  }
  out.place = *std::move(place);
  return out;
}

}  // namespace

bool is_address(std::string_view text) {
  constexpr std::array<std::string_view, 6> kSchemes = {
      {"http", "https", "ws", "wss", "unix", "http+unix"}};
  return text.contains("://") || std::ranges::count(kSchemes, scheme_of(text)) > 0;
}

Result<TargetPlace> parse_address(const std::string& text, bool is_http) {
  const std::string scheme = scheme_of(text);
  if (scheme == "unix" || scheme == "http+unix") {
    return parse_socket(std::string_view(text).substr(scheme.size() + 1),
                        is_http || scheme == "http+unix");
  }
  auto url = parse_url(text);
  if (!url) {
    // The text may have a secret, of a variable for example.
    std::string message = std::move(url.error().message);
    const std::string shown = masked_word(text) + ": ";
    if (message.starts_with(shown)) message.erase(0, shown.size());
    return fail(kExitUsage, std::move(message));
  }
  UrlTarget out{.url = *std::move(url)};
  if (out.url.is_websocket()) out.transport = TransportHint::ws;
  return out;
}

Result<Target> parse_target(const TargetArguments& arguments, const FoundServers& found,
                            const VariableSources& sources) {
  if (!arguments.command.empty()) {
    if (!arguments.word.empty()) {
      return fail(kExitUsage,
                  "give a target or a command after --, not both: " + std::string(kTargetForms));
    }
    return Target{.place = CommandTarget{.arguments = arguments.command}, .name = {}};
  }
  const std::string& word = arguments.word;
  if (word.empty()) {
    return fail(kExitUsage, "give a target: " + std::string(kTargetForms));
  }
  if (!is_address(word)) {
    const auto server = named_server(word, found);
    if (!server) return std::unexpected(server.error());
    return target_of(**server, sources);
  }
  auto place = parse_address(word);
  if (!place) {
    return fail(kExitUsage, "the target is not understood: " + place.error().message + "; " +
                                std::string(kTargetForms));
  }
  return Target{.place = *std::move(place), .name = {}};
}

}  // namespace sluice

#include "cli/proxy/proxy_targets.hpp"

#include <algorithm>
#include <utility>

#include "cli/options/exit_code.hpp"
#include "cli/targets/named_values.hpp"
#include "cli/targets/process_targets.hpp"
#include "cli/targets/revision_choice.hpp"
#include "cli/terminal/terminal.hpp"
#include "core/text/text.hpp"
#include "net/loop/event_loop.hpp"
#include "proxy/translation/names.hpp"

namespace sluice {
namespace {

/// What the log calls the server. A URL's query and a command's arguments may be secret.
std::string label_of(const Target& target) {
  if (!target.name.empty()) return target.name;
  if (const auto* const url = std::get_if<UrlTarget>(&target.place)) {
    const std::string text = url->url.to_string();
    return text.substr(0, text.find('?'));
  }
  if (const auto* const socket = std::get_if<UnixTarget>(&target.place)) {
    return "unix:" + socket->path;
  }
  return std::get<CommandTarget>(target.place).arguments.front();
}

/// Why a word is no target. It may have been meant as NAME=TARGET.
Error not_a_target(const std::string& word, Error why) {
  const std::string name = word.substr(0, word.find('='));
  // An address that has a `=` has one of these before it.
  if (name.size() == word.size() || name.find_first_of(":/") != std::string::npos) return why;
  return {kExitUsage,
          "\"" + name + "\" cannot be the name in NAME=TARGET: a name has 1 to " +
              std::to_string(kMaxPrefix) + " letters, digits and '-', and begins with a letter",
          {}};
}

Result<UpstreamOptions> named_upstream(const NamedTarget& named, const NamedValues& headers) {
  auto target = find_target(named.target);
  if (!target) {
    if (!named.name.empty()) return std::unexpected(std::move(target.error()));
    return std::unexpected(not_a_target(named.target.word, std::move(target.error())));
  }
  const std::string prefix = prefix_of(target->name);
  auto upstream = upstream_of(*std::move(target), headers);
  if (!upstream) return upstream;
  upstream->prefix = named.name.empty() ? prefix : named.name;
  if (!named.name.empty()) upstream->label = named.name;
  return upstream;
}

}  // namespace

Result<UpstreamOptions> upstream_of(Target target, const NamedValues& headers) {
  for (const std::string& warning : target.warnings) complain(warning);
  UpstreamOptions upstream{.label = label_of(target), .open_link = {}};
  if (target.startup_timeout) upstream.connect_timeout = *target.startup_timeout;
  auto place = server_place(std::move(target.place), headers);
  if (!place) return std::unexpected(std::move(place.error()));
  upstream.starts_program = std::holds_alternative<ServerCommand>(*place);
  if (auto* const at = std::get_if<LinkPlace>(&*place)) {
    at->secrets = std::make_shared<KnownSecrets>(secrets_of(*at));
    upstream.secrets = at->secrets;
    mask_in_complaints(at->secrets);
    at->connect_timeout = upstream.connect_timeout;
  }
  upstream.open_link = [place = *std::move(place)](Executor& loop) {
    // The loops of a server in this program are all of this kind.
    auto& events = static_cast<EventLoop&>(loop);
    return std::visit([&events](const auto& one) { return open_link(events, one); }, place);
  };
  return upstream;
}

Result<std::vector<NamedTarget>> named_targets(const ProxyTargets& targets) {
  std::vector<NamedTarget> out;
  bool has_command = false;
  for (const std::string& word : targets.words) {
    const auto sign = word.find('=');
    const bool is_named = sign != std::string::npos && is_prefix(word.substr(0, sign));
    NamedTarget& named = out.emplace_back();
    if (!is_named) {
      named.target.word = word;
      continue;
    }
    named.name = word.substr(0, sign);
    named.target.word = word.substr(sign + 1);
    if (!named.target.word.empty()) continue;
    if (targets.command.empty() || std::exchange(has_command, true)) {
      return fail(kExitUsage, word + ": give a target behind it, or a command behind --");
    }
    named.target.command = targets.command;
  }
  if (!targets.command.empty() && !has_command) {
    out.push_back({.name = {}, .target = {.word = {}, .command = targets.command}});
  }
  if (out.empty()) out.emplace_back();  // parse_target() says what a target is
  return out;
}

Result<std::vector<UpstreamOptions>> upstreams_of(const ProxyTargets& targets,
                                                  Duration idle_timeout) {
  const auto named = named_targets(targets);
  if (!named) return std::unexpected(named.error());
  if (auto known = check_revision(targets.revision); !known) {
    return std::unexpected(std::move(known.error()));
  }
  auto headers = split_named_values(targets.headers, ':', "--header \"Name: value\"");
  if (!headers) return std::unexpected(std::move(headers.error()));
  if (!headers->empty() && named->size() > 1) {
    return fail(kExitUsage,
                "--header: with several servers, say in a configuration file which of them gets it "
                "(sluice mcp add)");
  }
  std::vector<UpstreamOptions> out;
  for (const NamedTarget& each : *named) {
    auto upstream = named_upstream(each, *headers);
    if (!upstream) return std::unexpected(std::move(upstream.error()));
    upstream->revision = targets.revision;
    upstream->idle_timeout = idle_timeout;
    if (named->size() == 1) {
      // One that was given stays the same when another server is added.
      upstream->prefix = each.name;
    } else if (upstream->prefix.empty()) {
      return fail(kExitUsage, upstream->label +
                                  ": with several servers, each needs a name: give NAME=TARGET, or "
                                  "NAME= for the command behind --");
    }
    const auto same = std::ranges::find_if(out, [&](const UpstreamOptions& other) {
      return to_lower(other.prefix) == to_lower(upstream->prefix);
    });
    if (same != out.end()) {
      return fail(kExitUsage,
                  same->prefix == upstream->prefix
                      ? upstream->prefix + ": two servers have this name; give NAME=TARGET"
                      : same->prefix + " and " + upstream->prefix +
                            ": names must differ in more than case, because they "
                            "begin URIs; give NAME=TARGET");
    }
    out.push_back(*std::move(upstream));
  }
  return out;
}

}  // namespace sluice

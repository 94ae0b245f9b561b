#include "cli/completion/server_offers.hpp"

#include <algorithm>
#include <csignal>
#include <exception>
#include <optional>
#include <unistd.h>
#include <utility>
#include <vector>

#include "cli/completion/word_offers.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/remote/listing.hpp"
#include "cli/remote/remote_server.hpp"
#include "cli/targets/process_targets.hpp"
#include "cli/targets/server_report.hpp"
#include "cli/targets/target.hpp"
#include "cli/terminal/terminal.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

/// The sessions, and the names that configuration files have; with their application where that is
/// needed.
std::vector<Offer> target_offers() {
  std::vector<Offer> offers;
  if (const auto sessions = process_sessions()) {
    for (const SessionInfo& each : sessions->running().value_or(std::vector<SessionInfo>())) {
      offers.push_back({"@" + each.name, "session, " + each.target});
    }
  }
  const FoundServers found = process_servers();
  for (const std::string& name : found.names()) {
    const NamedServer named = find_server(found, name);
    if (named.server != nullptr) offers.push_back({name, describe_place(named.server->place)});
    for (const ServerConfig* const one : named.candidates) {
      const std::string application(name_of(one->source.application).id);
      offers.push_back({application + "/" + name, describe_place(one->place)});
    }
  }
  return offers;
}

/// The server that may be asked, if the word names one.
std::optional<Target> asked_target(const std::string& word) {
  if (is_session_word(word)) {
    auto session = find_target({.word = word});
    return session ? std::optional(*std::move(session)) : std::nullopt;
  }
  const FoundServers found = is_address(word) ? FoundServers() : process_servers();
  const NamedServer named = find_server(found, word);
  if (named.server != nullptr && named.server->source.scope == ConfigScope::project) {
    return std::nullopt;
  }
  auto target = parse_target({.word = word}, found, process_variables());
  return target ? std::optional(*std::move(target)) : std::nullopt;
}

std::vector<Offer> named_offers(std::span<const Listed> entries) {
  std::vector<Offer> offers;
  for (const Listed& entry : entries) {
    const std::string_view uri = text_at(entry.definition, "uri");
    const std::string& about = entry.description.empty() ? entry.title : entry.description;
    offers.push_back({uri.empty() ? entry.name : std::string(uri), first_sentence(about)});
  }
  return offers;
}

const Listed* named_entry(const std::vector<Listed>& entries, std::string_view name) {
  const auto found = std::ranges::find(entries, name, &Listed::name);
  return found == entries.end() ? nullptr : &*found;
}

/// Values of a prompt's argument, which the server suggests.
std::vector<Offer> value_offers(Client& client, const TypedWord& typed) {
  const auto equals = typed.begin.find('=');
  TypedArgument argument{.name = typed.begin.substr(0, equals),
                         .value = typed.begin.substr(equals + 1),
                         .context = {}};
  for (const std::string& one : typed.assignments) {
    const auto end = std::min(one.find('='), one.size() - 1);
    argument.context.emplace(one.substr(0, end), one.substr(end + 1));
  }
  std::vector<Offer> offers;
  for (const std::string& value : client.complete_prompt(typed.name, argument).values) {
    offers.push_back({argument.name + "=" + value});
  }
  return offers;
}

std::vector<Offer> offers_of(Client& client, const TypedWord& typed) {
  using Place = TypedWord::Place;
  if (typed.place == Place::resource) return named_offers(client.resources());
  if (typed.place == Place::prompt) return named_offers(client.prompts());
  if (typed.place == Place::tool) return named_offers(client.tools());
  if (typed.place == Place::prompt_argument) {
    if (typed.begin.contains('=')) return value_offers(client, typed);
    const std::vector<Listed> prompts = client.prompts();
    const Listed* const prompt = named_entry(prompts, typed.name);
    return prompt == nullptr ? std::vector<Offer>()
                             : prompt_argument_offers(prompt->definition, typed);
  }
  const std::vector<Listed> tools = client.tools();
  const Listed* const tool = named_entry(tools, typed.name);
  const json::object* const schema =
      tool == nullptr ? nullptr : object_at(tool->definition, "inputSchema");
  return schema == nullptr ? std::vector<Offer>() : tool_argument_offers(*schema, typed);
}

/// A shell waits for this program, which ends by itself even if the server holds it up. A child is
/// ended by the system then.
void limit_patience() {
  std::signal(SIGALRM, [](int) { ::_exit(kExitOk); });
  ::alarm(kOfferPatience);
}

}  // namespace

int print_offers(const CommandOutline& program, std::span<const std::string> words) {
  limit_patience();
  const auto typed = typed_word(program, words);
  if (!typed) return kExitOk;
  if (typed->place == TypedWord::Place::target) {
    return print(offer_lines(target_offers(), typed->begin));
  }
  auto target = asked_target(typed->target);
  if (!target) return kExitOk;
  RemoteOptions options;
  options.headers = typed->headers;
  options.revision = typed->revision;
  try {
    auto server = connect_to(*std::move(target), options, {});
    if (server) return print(offer_lines(offers_of(server->client, *typed), typed->begin));
  } catch (const std::exception&) {
    // Whoever types is not told: there is nothing to offer.
  }
  return kExitOk;
}

}  // namespace sluice

#include "cli/completion/server_offers.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <exception>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "cli/completion/word_offers.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/remote/listing.hpp"
#include "cli/remote/remote_server.hpp"
#include "cli/remote/stop_on_interrupt.hpp"
#include "cli/targets/process_targets.hpp"
#include "cli/targets/server_report.hpp"
#include "cli/targets/target.hpp"
#include "cli/terminal/terminal.hpp"
#include "json/members.hpp"
#include "net/loop/descriptor.hpp"

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

/// Prints the offers, and closes standard output before the server is ended, which may take longer.
int find_offers(const CommandOutline& program, std::span<const std::string> words) {
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
  const StopOnInterrupt interrupt;
  try {
    auto server = connect_to(*std::move(target), options, {.stop = interrupt.token()});
    if (!server) return kExitOk;
    const int printed = print(offer_lines(offers_of(*server, *typed), typed->begin));
    ::close(STDOUT_FILENO);
    return printed;
  } catch (const std::exception&) {
    // Whoever types is not told: there is nothing to offer.
  }
  return kExitOk;
}

/// All that comes from `source` until its end. Nothing if that takes longer than kOfferPatience.
std::optional<std::string> read_in_time(const Descriptor& source) {
  using std::chrono::steady_clock;
  const auto deadline = steady_clock::now() + std::chrono::seconds(kOfferPatience);
  std::string out;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now());
    pollfd wait{source.get(), POLLIN, 0};
    if (left.count() <= 0 || ::poll(&wait, 1, static_cast<int>(left.count())) == 0) {
      return std::nullopt;
    }
    std::array<char, 4096> piece{};
    const ssize_t got = ::read(source.get(), piece.data(), piece.size());
    if (got == 0) return out;
    if (got > 0) out.append(piece.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace

int print_offers(const CommandOutline& program, std::span<const std::string> words) {
  // A shell waits for this process, which may not wait for a server that ends slowly. So another
  // one asks the server, and outlives this one for as long as it takes to end what it has started.
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return kExitOk;
  Descriptor offers(ends[0]);
  Descriptor writer(ends[1]);
  const pid_t asker = ::fork();
  if (asker == 0) {
    ::dup2(writer.get(), STDOUT_FILENO);
    writer.close();
    offers.close();  // else a write to it would wait for a reader that has gone
    return find_offers(program, words);
  }
  if (asker < 0) return kExitOk;
  writer.close();
  const auto found = read_in_time(offers);
  if (found) return print(*found);
  ::kill(asker, SIGTERM);
  return kExitOk;
}

}  // namespace sluice

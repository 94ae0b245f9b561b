#include "cli/remote/remote_server.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>
#include <variant>

#include "cli/login/authorization_flags.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/targets/named_values.hpp"
#include "cli/targets/process_targets.hpp"
#include "cli/terminal/terminal.hpp"
#include "client/api/open_link.hpp"
#include "core/text/text.hpp"
#include "core/version.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {
namespace {

constexpr double kMaxTimeout = 1e6;  // seconds

Result<Duration> duration_of(double seconds) {
  if (!(seconds >= 0 && seconds <= kMaxTimeout)) {
    return fail(kExitUsage, "--timeout: give seconds from 0 to 1000000; 0 is no limit");
  }
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

/// Headers of the command line go before those of a file.
void add_headers(NamedValues& headers, NamedValues more) {
  for (auto& [name, value] : more) {
    std::erase_if(headers, [&](const auto& one) { return to_lower(one.first) == to_lower(name); });
  }
  std::ranges::move(more, std::back_inserter(headers));
}

HttpTransport transport_of(TransportHint hint) {
  if (hint == TransportHint::http) return HttpTransport::streamable;
  return hint == TransportHint::sse ? HttpTransport::sse : HttpTransport::any;
}

/// A mistake of the user. The codes of other errors may be a server's own.
struct WrongUsage {
  std::string message;
};

/// Connects to one kind of place. Throws WrongUsage, and Error as connect().
struct Connector {
  ClientOptions options;
  NamedValues headers;  // of the command line

  void add(NamedValues configured) {
    add_headers(configured, std::move(headers));
    if (const auto good = own_headers(configured); !good) {
      throw WrongUsage(good.error().message);
    }
    options.headers = std::move(configured);
  }
  /// Uses what `sluice login` has stored, unless a header authorizes the requests. Nobody is asked.
  void authorize(const Url& server) {
    const bool has_header = std::ranges::any_of(options.headers, [](const auto& header) {
      return to_lower(header.first) == "authorization";
    });
    if (has_header) return;
    auto made = stored_authorization(server);
    if (!made) throw WrongUsage(made.error().message);
    options.authorization = *std::move(made);
  }
  Client operator()(UrlTarget& place) {
    options.http_transport = transport_of(place.transport);
    add(std::move(place.headers));
    authorize(place.url);
    return connect(place.url.to_string(), std::move(options));
  }
  Client operator()(UnixTarget& place) {
    if (place.http_target.empty()) {
      if (!headers.empty()) throw WrongUsage("--header: unix: has no HTTP headers");
      return connect("unix:" + place.path, std::move(options));
    }
    add(std::move(place.headers));
    return connect("http+unix:" + place.path + "#" + place.http_target, std::move(options));
  }
  Client operator()(CommandTarget& place) {
    if (!headers.empty()) throw WrongUsage("--header: a command has no HTTP headers");
    return connect(ServerCommand{.arguments = std::move(place.arguments),
                                 .environment = std::move(place.environment),
                                 .directory = std::move(place.directory)},
                   std::move(options));
  }
};

Result<RemoteServer> open_server(const RemoteWords& words, const RemoteOptions& options,
                                 ClientOptions client) {
  auto target = find_target(words.target);
  if (!target) return std::unexpected(std::move(target.error()));
  for (const std::string& warning : target->warnings) complain(warning);
  return connect_to(*std::move(target), options, std::move(client));
}

}  // namespace

Result<RemoteServer> connect_to(Target target, const RemoteOptions& options, ClientOptions client) {
  auto headers = split_named_values(options.headers, ':', "--header \"Name: value\"");
  if (!headers) return std::unexpected(std::move(headers.error()));
  client.info = {.name = "sluice", .version = std::string(kVersion)};
  client.revision = options.revision;
  if (target.startup_timeout) client.connect_timeout = *target.startup_timeout;
  if (target.request_timeout) client.idle_timeout = *target.request_timeout;
  if (options.timeout) {
    const auto timeout = duration_of(*options.timeout);
    if (!timeout) return std::unexpected(timeout.error());
    if (*timeout > Duration()) client.connect_timeout = *timeout;
    client.idle_timeout = *timeout;
  }
  try {
    Connector connector{.options = std::move(client), .headers = *std::move(headers)};
    return RemoteServer{.client = std::visit(connector, target.place)};
  } catch (const WrongUsage& wrong) {
    return fail(kExitUsage, wrong.message);
  } catch (const Error& error) {
    // A program that is not there is a server that cannot be reached.
    const bool is_command = std::holds_alternative<CommandTarget>(target.place);
    const bool is_absent = error.code == kTimedOut || (error.code == kBadRequest && is_command);
    return fail(is_absent ? kExitUnreachable : exit_code_of(error), error.message);
  }
}

int with_server(std::string_view command, const RemoteOptions& options, const WordForm& form,
                ClientOptions client,
                const std::function<int(RemoteServer&, const RemoteWords&)>& work) {
  const auto failed = [&](const Error& error, int code) {
    complain(std::string(command) + ": " + error.message);
    return code;
  };
  const auto words = split_words(options.words, options.command, form);
  if (!words) return failed(words.error(), words.error().code);
  auto server = open_server(*words, options, std::move(client));
  if (!server) return failed(server.error(), server.error().code);
  try {
    return work(*server, *words);
  } catch (const Error& error) {
    return failed(error, exit_code_of(error));
  }
}

}  // namespace sluice

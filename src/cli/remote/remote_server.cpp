#include "cli/remote/remote_server.hpp"

#include <chrono>
#include <string>
#include <unistd.h>
#include <utility>
#include <variant>

#include "cli/login/authorization_flags.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/questions/terminal_answers.hpp"
#include "cli/remote/server_place.hpp"
#include "cli/remote/stop_on_interrupt.hpp"
#include "cli/targets/named_values.hpp"
#include "cli/targets/process_targets.hpp"
#include "cli/targets/revision_choice.hpp"
#include "cli/terminal/interrupts.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/terminal/traffic_text.hpp"
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

/// Throws Error.
Client connect_at(ServerPlace place, ClientOptions options) {
  if (const auto* const command = std::get_if<ServerCommand>(&place)) {
    return connect(*command, std::move(options));
  }
  auto& listening = std::get<LinkPlace>(place);
  listening.secrets = std::make_shared<KnownSecrets>(secrets_of(listening));
  mask_in_complaints(listening.secrets);
  listening.on_traffic = options.on_traffic;
  listening.connect_timeout = options.connect_timeout;
  return detail::connect_place(listening, std::move(options));
}

Result<Client> open_server(const RemoteWords& words, const RemoteOptions& options,
                           ClientOptions client) {
  auto target = find_target(words.target);
  if (!target) return std::unexpected(std::move(target.error()));
  for (const std::string& warning : target->warnings) complain(warning);
  return connect_to(*std::move(target), options, std::move(client));
}

}  // namespace

Result<Client> connect_to(Target target, const RemoteOptions& options, ClientOptions client) {
  auto headers = split_named_values(options.headers, ':', "--header \"Name: value\"");
  if (!headers) return std::unexpected(std::move(headers.error()));
  client.info = {.name = "sluice", .version = std::string(kVersion)};
  client.on_renewed = [] {
    complain(
        "the server had forgotten the session; in the new one, what calls have stored, "
        "subscriptions and the log level are lost");
  };
  if (auto known = check_revision(options.revision); !known) {
    return std::unexpected(std::move(known.error()));
  }
  client.revision = options.revision;
  if (options.is_verbose) client.on_traffic = traffic_printer();
  if (target.startup_timeout) client.connect_timeout = *target.startup_timeout;
  if (target.request_timeout) client.idle_timeout = *target.request_timeout;
  if (options.timeout) {
    const auto timeout = duration_of(*options.timeout);
    if (!timeout) return std::unexpected(timeout.error());
    if (*timeout > Duration()) {
      client.connect_timeout = *timeout;
      client.probe_timeout = std::min<std::chrono::nanoseconds>(client.probe_timeout, *timeout);
    }
    client.idle_timeout = *timeout;
  }
  auto place = server_place(std::move(target.place), *std::move(headers));
  if (!place) return std::unexpected(std::move(place.error()));
  const bool is_command = std::holds_alternative<ServerCommand>(*place);
  try {
    return connect_at(*std::move(place), std::move(client));
  } catch (const Error& error) {
    // A program that is not there is a server that cannot be reached.
    const bool is_absent = error.code == kTimedOut || (error.code == kBadRequest && is_command);
    return fail(is_absent ? kExitUnreachable : exit_code_of(error), error.message);
  }
}

int with_server(std::string_view command, const RemoteOptions& options, const WordForm& form,
                Result<ClientOptions> client,
                const std::function<int(Client&, const RemoteWords&)>& work) {
  const auto failed = [&](const Error& error, int code) {
    const std::string_view why = error.message.empty() ? "the server does not say what is wrong"
                                                       : std::string_view(error.message);
    complain(std::string(command) + ": " + std::string(why));
    write_all(STDERR_FILENO, pages_before(error));
    return code;
  };
  const auto words = split_words(options.words, options.command, form);
  if (!words) return failed(words.error(), words.error().code);
  if (!client) return failed(client.error(), client.error().code);
  const StopOnInterrupt interrupt;
  client->stop = interrupt.token();
  const auto failed_unless_interrupted = [&](const Error& error, int code) {
    return Interrupts::is_pending() ? kExitInterrupted : failed(error, code);
  };
  auto server = open_server(*words, options, *std::move(client));
  if (!server) return failed_unless_interrupted(server.error(), server.error().code);
  try {
    const int code = work(*server, *words);
    return Interrupts::is_pending() ? kExitInterrupted : code;
  } catch (const Error& error) {
    return failed_unless_interrupted(error, exit_code_of(error));
  }
}

}  // namespace sluice

#include "cli/options/connection_options.hpp"

#include <algorithm>

#include "cli/options/command_line.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/options/process_environment.hpp"

namespace sluice {

void add_connection_options(Subcommand& command, ConnectionOptions& options) {
  const std::string group = "Connection";
  command.add_option("--url", &options.url,
                     {.text = "Address of the server, such as http://127.0.0.1:8080. SLUICE_URL",
                      .operand = "URL",
                      .group = group});
  command.add_option(
      "--key", &options.key,
      {.text = "API key. Prefer SLUICE_KEY: other users of this machine can see flags",
       .operand = "KEY",
       .group = group});
  command.add_option("--ca", &options.ca_file,
                     {.text = "Trust certificates that are signed by the ones in this file (PEM)",
                      .operand = "FILE",
                      .group = group});
  command.add_flag(
      "--insecure", options.insecure,
      {.text = "Trust any certificate; only for tests on this machine", .group = group});
}

void complete_from_environment(ConnectionOptions& options) {
  if (options.url.empty()) options.url = environment("SLUICE_URL").value_or("");
  if (options.key.empty()) options.key = environment("SLUICE_KEY").value_or("");
}

Result<ServerAddress> server_address(const ConnectionOptions& options) {
  if (std::ranges::any_of(options.key, [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; })) {
    return fail(kExitUsage, "--key: a key has no control characters, such as line breaks");
  }
  auto address = make_server_address(options.url, options.key,
                                     {.ca_file = options.ca_file, .insecure = options.insecure});
  if (!address) return fail(kExitUsage, address.error().message);
  return address;
}

}  // namespace sluice

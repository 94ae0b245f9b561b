#include "cli/client_options.hpp"

#include <CLI/CLI.hpp>

#include "cli/exit_code.hpp"
#include "cli/process_environment.hpp"

namespace sluice {

void add_client_options(CLI::App& app, ClientOptions& options) {
  app.add_option("--url", options.url, "The server, such as http://127.0.0.1:8080. SLUICE_URL")
      ->type_name("URL")
      ->group("Connection");
  app.add_option("--key", options.key,
                 "API key. SLUICE_KEY; other users of this machine can see flags")
      ->type_name("KEY")
      ->group("Connection");
  app.add_option("--ca", options.ca_file, "Trust certificates signed by these (PEM)")
      ->type_name("FILE")
      ->group("Connection");
  app.add_flag("--insecure", options.insecure, "Trust any certificate, for tests on this machine")
      ->group("Connection");
}

void complete_from_environment(ClientOptions& options) {
  if (options.url.empty()) options.url = environment("SLUICE_URL").value_or("");
  if (options.key.empty()) options.key = environment("SLUICE_KEY").value_or("");
}

Result<ServerAddress> server_address(const ClientOptions& options) {
  auto address = make_server_address(options.url, options.key,
                                     {.ca_file = options.ca_file, .insecure = options.insecure});
  if (!address) return fail(kExitUsage, "--url: " + address.error().message);
  return address;
}

}  // namespace sluice

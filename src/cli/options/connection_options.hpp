#pragma once

#include <string>

#include "client/server_address.hpp"
#include "core/error.hpp"

namespace sluice {

class Subcommand;

/// How to reach a server; `chat` and `bench` share these options.
struct ConnectionOptions {
  std::string url;  // empty if none was given
  std::string key;
  std::string ca_file;
  bool insecure = false;
};

/// Adds --url, --key, --ca and --insecure. `options` must outlive the parsing.
void add_connection_options(Subcommand& command, ConnectionOptions& options);

/// Uses SLUICE_URL and SLUICE_KEY where the flags are missing.
void complete_from_environment(ConnectionOptions& options);

/// The address of `options.url`. Errors carry kExitUsage.
Result<ServerAddress> server_address(const ConnectionOptions& options);

}  // namespace sluice

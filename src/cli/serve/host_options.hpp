#pragma once

#include <memory>

#include "auth/access_policy.hpp"
#include "cli/options/serve_config.hpp"
#include "core/error.hpp"
#include "net/io/tls.hpp"
#include "server/host/server_host.hpp"

namespace sluice {

// What the settings of a server mean.

/// Errors carry kExitUsage.
Result<ServerHostOptions> host_options(const ServeConfig& config);
/// Of settings that have keys.
std::shared_ptr<Authenticator> authenticator(const ServeConfig::Access& access);
/// Null: the settings have no certificate.
Result<std::shared_ptr<TlsContext>> tls_context(const ServeConfig& config);
/// Logs as the settings say, from now on. The error says why the file cannot be used; nothing has
/// changed then.
Result<void> use_log(const ServeConfig::Log& log);

}  // namespace sluice

#pragma once

#include "core/error.hpp"
#include "server/host/server_host.hpp"
#include "sluice/serve.hpp"

namespace sluice {

/// Copies the limits of `options` into those of a host. The error says which contradict each other.
Result<void> set_limits(const ServeOptions& options, ServerHostOptions& host);

}  // namespace sluice

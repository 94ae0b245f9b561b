#pragma once

#include "core/clock.hpp"
#include "sluice/middleware.hpp"

namespace sluice {

/// Middleware that logs each request at level debug when it ends: its method, the name of the tool
/// or prompt, the client, the milliseconds that it took by `clock`, and how it ended. Arguments,
/// URIs and ids, which may be secret, are left out. At most kRequestLines lines are logged in a
/// second; the next one says how many were left out. Put it around all other middleware.
/// Thread-safe, if `clock` is, which must outlive it.
Middleware request_log(const Clock& clock);

inline constexpr int kRequestLines = 100;

}  // namespace sluice

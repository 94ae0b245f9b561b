#pragma once

#include "cli/bench/bench_transport.hpp"
#include "client/server_address.hpp"
#include "core/error.hpp"

namespace sluice {

/// Asks for one unit of a load, and stops it when it begins to arrive. Returns an error if the
/// load could only fail: with kExitUnreachable if there is no connection, with kExitUsage if the
/// server does not know the method or the tool, or refuses the parameters. Everything else is left
/// to the load, which reports it.
Result<void> probe(const ServerAddress& address, const BenchRequest& request);

}  // namespace sluice

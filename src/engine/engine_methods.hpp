#pragma once

#include "engine/engine.hpp"
#include "server/catalog/definition.hpp"

namespace sluice {

/// Adds what a model offers to `definition`: the stream method `run`, the tool `generate` and the
/// engine's metrics. `engine` outlives everything served with the definition.
void add_engine_methods(ServerDefinition& definition, Engine& engine);

/// Adds the tools for load tests: `echo {text}` and `stream_numbers {count, interval_ms}`, which
/// uses `engine`, a synthetic one, to emit numbered progress messages.
void add_load_test_tools(ServerDefinition& definition, Engine& engine);

}  // namespace sluice

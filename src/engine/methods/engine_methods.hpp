#pragma once

#include "engine/engine.hpp"
#include "engine/methods/engine_functions.hpp"
#include "server/catalog/definition.hpp"

namespace sluice {

/// Adds the stream method `run`, the tool `generate`, the functions of RKLLM's C interface and the
/// engine's metrics to `definition`. `engine` must outlive every server that uses the definition.
void add_engine_methods(ServerDefinition& definition, Engine& engine, FunctionOptions options = {});

/// Adds the tools for load tests: `echo {text}`, and `stream_numbers {count, interval_ms}`, which
/// emits numbered progress messages with `engine`, a synthetic engine.
void add_load_test_tools(ServerDefinition& definition, Engine& engine);

}  // namespace sluice

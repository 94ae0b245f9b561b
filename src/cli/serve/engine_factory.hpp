#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cli/options/serve_config.hpp"
#include "core/error.hpp"
#include "engine/engine.hpp"

namespace sluice {

/// An engine and why it cannot answer yet.
struct EngineHandle {
  std::unique_ptr<Engine> engine;
  /// Empty once it can answer; else what it is doing, or why it never will. Thread-safe.
  std::function<std::string()> not_ready;
  /// Waits until it can answer, but for no longer than it is told. An error says why it never will;
  /// false: not yet.
  std::function<Result<bool>(Duration)> wait_ready;
};

/// Makes the engine that `config` asks for. Errors carry an exit code of the program.
Result<EngineHandle> make_engine(const ServeConfig& config);

/// The file of the tiny model that runs when none is named: the one installed with the program, or
/// the one in the build tree. Empty if there is none.
std::string built_in_model();

/// Whether `config` leaves it at the built-in model.
bool runs_built_in_model(const ServeConfig& config);

}  // namespace sluice

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "cli/options/serve_config.hpp"
#include "core/error.hpp"
#include "engine/engine.hpp"

namespace sluice {

class LoopPool;

/// An engine, and whether it is ready to answer.
struct EngineHandle {
  std::shared_ptr<Engine> engine;
  /// Returns an empty text once the engine can answer. Until then it returns what the engine is
  /// doing, or why it will never be ready. Thread-safe.
  std::function<std::string()> not_ready;
  /// Waits until the engine can answer, at most for the time given. Returns true when it can and
  /// false if it cannot yet. An error says why it never will.
  std::function<Result<bool>(Duration)> wait_ready;
  /// To be called before the loops that make_engine() was given are stopped.
  std::function<void()> leave_loops = [] {};
};

/// Makes the engine that `config` asks for. `loops`: for an engine that can live on those of a
/// server; they outlive it, and null means that it has its own. Errors carry an exit code of the
/// program.
Result<EngineHandle> make_engine(const ServeConfig& config, LoopPool* loops = nullptr);

/// Checks that there is the device that `config` names for the model. Errors carry kExitUsage.
Result<void> check_backend(const ServeConfig& config);

/// Checks that `path` is a GGUF file with all of its data, and returns the number of its tensors.
/// Errors name the file.
Result<std::uint64_t> check_model_file(const std::string& path);

/// Checks that there is memory for the context that `config` asks for, as make_engine()'s engine
/// does when it loads the model.
Result<void> check_context(const ServeConfig& config);

/// The path of the tiny model that runs when no model is named: the file installed with the
/// program, or the one in the build tree. Empty if there is none.
std::string built_in_model();

/// Whether `config` names no model, so that the built-in one runs.
bool runs_built_in_model(const ServeConfig& config);

}  // namespace sluice

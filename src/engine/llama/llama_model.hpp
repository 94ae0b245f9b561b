#pragma once

#include <cstdint>
#include <functional>
#include <llama.h>
#include <memory>
#include <string>

#include "core/error.hpp"
#include "engine/llama/llama_engine.hpp"

namespace sluice {

struct LlamaDeleter {
  void operator()(llama_model* model) const { llama_model_free(model); }
  void operator()(llama_context* context) const { llama_free(context); }
};

/// A model and the context that `slots` sequences share. The context is destroyed first.
struct LoadedModel {
  std::unique_ptr<llama_model, LlamaDeleter> model;
  std::unique_ptr<llama_context, LlamaDeleter> context;
  std::string name;
  std::uint32_t context_tokens = 0;  // the most tokens of one sequence
  std::uint32_t slots = 0;
  std::uint32_t batch_tokens = 0;  // prompt tokens in one step, besides one token per slot
  bool can_copy = false;           // whether the beginning of a sequence can be copied to another
};

/// Checks and loads the file and creates the context. `progress` receives values from 0 to 1 and
/// may return false to stop. The time it takes grows with the size of the model. Errors have a
/// ModelFault; no faulty file ends the process.
Result<LoadedModel> load_model(const LlamaOptions& options,
                               const std::function<bool(float)>& progress);

}  // namespace sluice

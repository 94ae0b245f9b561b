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

/// A model and the context that `slots` sequences share. The context goes first.
struct LoadedModel {
  std::unique_ptr<llama_model, LlamaDeleter> model;
  std::unique_ptr<llama_context, LlamaDeleter> context;
  std::string name;
  std::uint32_t context_tokens = 0;  // that one sequence may have
  std::uint32_t slots = 0;
  std::uint32_t batch_tokens = 0;  // in one step, beside one for each slot
  bool can_copy = false;           // the beginning of one sequence to another
};

/// Checks the file, loads it and makes the context. `progress` gets 0 to 1 and may return false to
/// give up. Takes as long as the model is large. Errors carry a ModelFault; no bad file ends the
/// process.
Result<LoadedModel> load_model(const LlamaOptions& options,
                               const std::function<bool(float)>& progress);

}  // namespace sluice

#pragma once

#include <cstddef>
#include <llama.h>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/error.hpp"
#include "engine/model_change.hpp"

namespace sluice {

/// An adapter of the model, which has it as long as it exists.
struct LoraAdapter {
  llama_adapter_lora* adapter;
  float scale;
  std::string path;
};

/// The LoRA adapters that runs may name. They stay as long as the model.
class LoraAdapters {
 public:
  /// Reads the file into the memory of `model`. While it does, nothing else may use the model.
  /// Errors: kInvalidParams for a file that is none of an adapter of this model, for a name that
  /// another adapter has, and for too many adapters.
  Result<void> load(llama_model& model, const LoadLora& wanted);
  /// Null: there is none of this name. Thread-safe; what it returns does not change.
  [[nodiscard]] const LoraAdapter* find(const std::string& name) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::unique_ptr<const LoraAdapter>> adapters_;
};

}  // namespace sluice

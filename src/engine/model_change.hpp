#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/error.hpp"
#include "net/loop/descriptor.hpp"

namespace sluice {

// What changes a model for all that ask it afterwards, while it is served.

/// A file that was checked when it was opened. The descriptor stays that file; the path may become
/// another one's.
struct NamedFile {
  std::string path;
  std::shared_ptr<const Descriptor> descriptor;
};

/// Adds a LoRA adapter, which requests name (GenerationRequest::lora_adapter). A name keeps its
/// adapter: the same file and scale once more change nothing, others are refused.
struct LoadLora {
  static constexpr std::size_t kMaxName = 256;  // bytes
  static constexpr std::size_t kMost = 16;      // adapters of an engine

  std::string name;
  NamedFile file;
  float scale = 1;
};
/// Prompts that begin as that of the cache does are read faster. Replaces the one before.
struct LoadPromptCache {
  NamedFile file;
};
struct ReleasePromptCache {};
/// What the decoder attends to. Replaces what was set before. The shapes: k is
/// [layers][tokens][heads][width], v is [layers][heads][width][tokens], the others are [tokens].
struct SetCrossAttention {
  static constexpr std::size_t kMaxBytes = std::size_t{64} << 20U;  // of all four

  std::vector<float> k;
  std::vector<float> v;
  std::vector<float> mask;
  std::vector<std::int32_t> positions;
};

using ModelChange = std::variant<LoadLora, LoadPromptCache, ReleasePromptCache, SetCrossAttention>;

/// Is told once how a change has ended, on any thread, and must not block. Errors: kInvalidParams
/// for what does not fit the model; kMethodNotFound if the engine has nothing like it; kBusy if
/// there is no model now; kInternalError if the runtime has failed.
using ChangeDone = std::move_only_function<void(Result<void> outcome)>;

/// What a request is told that names an adapter that is not there.
inline constexpr const char* kNoSuchAdapter =
    "there is no LoRA adapter of this name; an operator loads one with load_lora";

}  // namespace sluice

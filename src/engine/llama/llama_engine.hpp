#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"
#include "engine/engine.hpp"
#include "engine/llama/model/model_fault.hpp"

namespace sluice {

/// How far the model has come. `message` is a sentence for people; on failure it says what is wrong
/// with the file or the machine, and how to fix it.
struct ModelState {
  enum class Phase : std::uint8_t { loading, ready, failed };
  Phase phase = Phase::loading;
  float progress = 0;  // of the weights, 0 to 1
  ModelFault fault = ModelFault::none;
  std::string message;
};

/// "loading", "ready", "failed".
std::string_view to_string(ModelState::Phase phase);

struct LlamaOptions {
  enum class FlashAttention : std::uint8_t { automatic, on, off };

  std::string model_path;            // a GGUF file
  std::uint32_t slots = 4;           // sequences decoded together; at least 1, at most 256
  std::uint32_t context_tokens = 0;  // of one sequence; 0: what the model was trained for, or what
                                     // fits into half of the free memory if that is less
  std::uint32_t threads = 0;         // of the computation; 0: one per core, 1 for a tiny model
  std::uint32_t batch_threads = 0;   // of prompts; 0: as `threads`
  std::string backend = "auto";      // "auto", "cpu", or one of llama_devices()
  std::int32_t gpu_layers = -1;      // -1: all that fit
  FlashAttention flash_attention = FlashAttention::automatic;
  std::uint32_t batch_tokens = 2048;  // most prompt tokens in one step
  std::uint32_t max_queue = 256;      // requests waiting beyond those that have a slot
  bool share_prefixes = false;        // what one principal's prompt left may serve another's; then
                                      // usage.cached_tokens tells what others asked
  /// How long a slot stays reserved for a sequence whose reader is slow, or with a principal that
  /// has more than its share, while others wait for one.
  Duration pause_grace = std::chrono::seconds(1);
  /// Told every change of the state, on the engine's thread: at most once per percent of the load.
  std::function<void(const ModelState&)> on_model_state;
};

/// llama.cpp in this process: any GGUF file, on one thread of its own that decodes up to `slots`
/// sequences together (continuous batching). What a prompt has in common with what a slot already
/// holds is not computed again.
///
/// start() prepares on the caller's thread what takes less than a millisecond: a short prompt
/// without a schema, a grammar or tools. All else is prepared on a thread of its own, and the same
/// errors then come with on_complete. Sinks are called on the engine's thread. shutdown() must not
/// be called from a sink.
///
/// Principals are admitted in turn and have shares of the queue (AdmissionQueue, QueueShares);
/// while one waits, no other keeps two slots more than it has.
class LlamaEngine : public Engine {
 public:
  /// Thread-safe.
  [[nodiscard]] virtual ModelState model_state() const = 0;
  /// Waits until the model is ready or has failed, also because shutdown() was called, but for no
  /// longer than `at_most`, and returns the state.
  [[nodiscard]] virtual ModelState wait_until_loaded(
      Duration at_most = std::chrono::hours(24)) const = 0;
};

/// Starts the engine's thread, which loads the model. Returns at once; until the model is ready,
/// start() answers kBusy.
std::unique_ptr<LlamaEngine> make_llama_engine(LlamaOptions options);

/// The names of the devices that a model can run on, beside the CPU.
std::vector<std::string> llama_devices();

}  // namespace sluice

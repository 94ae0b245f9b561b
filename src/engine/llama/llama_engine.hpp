#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"
#include "engine/chat/chat_template.hpp"
#include "engine/engine.hpp"
#include "engine/llama/model/model_fault.hpp"

namespace sluice {

/// The state of loading the model. `message` is a human-readable sentence; on failure it says what
/// is wrong with the file or the machine, and how to fix it.
struct ModelState {
  enum class Phase : std::uint8_t { loading, ready, failed };
  Phase phase = Phase::loading;
  float progress = 0;  // part of the weights that is loaded, 0 to 1
  ModelFault fault = ModelFault::none;
  std::string message;
};

/// "loading", "ready", "failed".
std::string_view to_string(ModelState::Phase phase);

struct LlamaOptions {
  enum class FlashAttention : std::uint8_t { automatic, on, off };

  std::string model_path;               // a GGUF file
  ChatTemplateText chat_template = {};  // instead of the model's, if it has one
  std::uint32_t slots = 4;              // sequences that are decoded together; 1 to 256
  std::uint32_t context_tokens = 0;  // of one sequence; 0: what the model was trained for, or less
                                     // if only less fits into half of the free memory
  std::uint32_t threads = 0;         // for decoding; 0: one per core, but 1 for a tiny model
  std::uint32_t batch_threads = 0;   // for prompts; 0: the same as `threads`
  std::string backend = "auto";      // "auto", "cpu", or one of llama_devices()
  std::int32_t gpu_layers = -1;      // -1: as many as fit
  FlashAttention flash_attention = FlashAttention::automatic;
  std::uint32_t batch_tokens = 2048;  // the most prompt tokens in one step
  std::uint32_t max_queue = 256;      // the most requests that wait for a slot
  bool share_prefixes = false;        // whether a prompt may reuse what another principal's
                                      // left; usage.cached_tokens then reveals others' prompts
  /// While others wait for a slot: how long a slot stays reserved for a sequence whose reader is
  /// slow, or for a principal that has more than its share.
  Duration pause_grace = std::chrono::seconds(1);
  /// Called for every change of the state, on the engine's thread; at most once per percent while
  /// loading.
  std::function<void(const ModelState&)> on_model_state;
};

/// Runs llama.cpp in this process, with any GGUF file. One thread of its own decodes up to `slots`
/// sequences together (continuous batching). The part that a prompt has in common with what a slot
/// already holds is not computed again.
///
/// start() only checks ranges and sizes. A request is prepared on another thread, which reports
/// what it refuses with on_complete. A short prompt without a schema, a grammar or tools does not
/// wait for longer requests there. Sinks are called on the engine's thread. shutdown() must not be
/// called from a sink.
///
/// Principals are admitted in turn and have shares of the queue (AdmissionQueue, QueueShares).
/// While a principal waits, no other principal keeps more than one slot more than it has.
class LlamaEngine : public Engine {
 public:
  /// Thread-safe.
  [[nodiscard]] virtual ModelState model_state() const = 0;
  /// Waits until the model is ready or has failed (which shutdown() causes too), but no longer than
  /// `at_most`. Returns the state.
  [[nodiscard]] virtual ModelState wait_until_loaded(
      Duration at_most = std::chrono::hours(24)) const = 0;
  /// For the end of the process: as shutdown(), but answers do not end, also those that are asked
  /// for afterwards. Sinks hear no more of them, so nobody keeps one as cancelled that is to be
  /// given again.
  virtual void leave() = 0;
};

/// Starts the engine's thread, which loads the model, and returns at once. Until the model is
/// ready, start() returns kBusy.
std::unique_ptr<LlamaEngine> make_llama_engine(LlamaOptions options);

/// The names of the devices besides the CPU that a model can run on.
std::vector<std::string> llama_devices();

/// Whether a model can run on `backend`, as in LlamaOptions. The error says which devices there
/// are.
Result<void> check_llama_device(const std::string& backend);

/// Whether there is memory for the context of `options`. Reads of the model only what describes it.
/// The error is that of loading the model. All other faults of the file are passed over.
Result<void> check_llama_context(const LlamaOptions& options);

}  // namespace sluice

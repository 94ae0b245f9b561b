#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "engine/chat/chat_template.hpp"
#include "engine/engine.hpp"
#include "engine/rkllm/prompt_cache/prompt_cache_folder.hpp"

namespace sluice {
class LoopPool;
}

namespace sluice::rkllm {

struct RkllmOptions {
  std::string model_path;         // a .rkllm file
  std::string library_path = {};  // of librkllmrt.so; empty: it is looked for
  std::string abi = {};           // its ABI's name; empty: that of its version
  /// Conversations are rendered with it, and the runtime's own template is off. Null: the runtime
  /// has its own, and is given conversations as one text of a user; tools are refused.
  std::shared_ptr<const ChatTemplate> chat_template = {};
  /// Makes GBNF of a json_schema, on a thread that prepares requests. Error: it cannot be
  /// expressed; then answers are checked. Null: so are all.
  std::function<Result<std::string>(std::string_view json_schema)> schema_grammar = {};
  bool cross_attention = false;      // the model is loaded for SetCrossAttention
  std::uint32_t slots = 1;           // processes with the model; 1 to 8
  bool share_prefixes = false;       // whether a prompt may reuse what another principal's left
  std::uint32_t context_tokens = 0;  // 0: what the runtime has by default
  /// A folder for prompt caches that are written and loaded by themselves; empty: there are none.
  std::string prompt_cache_dir = {};
  PromptCacheLimits prompt_cache_limits = {};
  std::uint32_t max_queue = 256;         // the most requests that wait
  std::vector<std::string> worker = {};  // how a process is started that calls run_worker()
  std::vector<std::pair<std::string, std::string>> environment = {};  // of these, besides ours
  /// The engine lives on the first of these loops, so that a reader there hears of a token without
  /// another thread in between. They run until leave_loop() has returned, or never, and outlive the
  /// engine. Null: it has a loop of its own.
  LoopPool* loops = nullptr;
  Duration load_timeout = std::chrono::minutes(10);  // from the start of a process to its model
  Duration test_timeout = std::chrono::minutes(1);   // of trying whether tokens can be chosen
  Duration restart_pause = std::chrono::seconds(1);  // the first; they grow to a minute
  /// How long the runtime may take to end an answer that nobody wants. Then its process is killed.
  Duration abort_timeout = std::chrono::seconds(30);
};

/// Runs Rockchip's NPU runtime, each instance in a process of its own that may die: then its answer
/// ends with an error, and another process is started, after a growing pause.
///
/// If the model's tokenizer.json is in its folder, and a test of each new process shows that the
/// runtime can be used so, tokens are chosen here where a request needs that (TokenSteps): for a
/// grammar, a json_schema, a seed, and what the runtime cannot sample. A process that dies of the
/// test is replaced by one without it.
///
/// Else a request with a json_schema is answered only when the answer follows it: a model whose
/// answer does not is asked again (AnswerCheck), and then the generation fails.
///
/// What change() loads is loaded again into a process that takes the place of another. If it cannot
/// be, it is lost, which the log says: requests that name a lost adapter are refused, and all
/// requests while what the decoder attends to is lost.
///
/// With a folder for prompt caches, what the runtime has computed of a long prompt is saved there,
/// and loaded for a later one of the same owner that begins with it, where the runtime's memory has
/// less of it. A run has none that uses an adapter or saves its prompt for an operator, or while
/// an operator has loaded a prompt cache or cross attention.
///
/// An instance gives one answer at a time; other requests wait in turn (AdmissionQueue,
/// QueueShares). A reader that is slow holds up nobody: what the model has said waits, at most as
/// much as fits in the context. Sinks are called on the engine's loop. shutdown() must not be
/// called from a sink.
class RkllmEngine : public Engine {
 public:
  /// Why no answer can be given now, for people; empty: nothing is in the way. Thread-safe.
  [[nodiscard]] virtual std::string not_ready() const = 0;
  /// Waits until a model is loaded, at most for so long. Returns whether one is. Error
  /// kServiceUnavailable: it cannot be loaded, and why. Thread-safe.
  [[nodiscard]] virtual Result<bool> wait_ready(Duration at_most) const = 0;
  /// Cancels all generations and ends the processes; the loops that were given may then be stopped.
  /// A part of shutdown(). Call it on the thread that starts and stops these loops.
  virtual void leave_loop() = 0;
};

/// Starts the processes, and returns at once. Until a model is loaded, start() returns kBusy.
/// Errors: those of finding and inspecting the library; 422, its version is not known or has no
/// cross attention; 404, there is no such model; those of PromptCacheFolder::open().
Result<std::unique_ptr<RkllmEngine>> make_rkllm_engine(RkllmOptions options);

}  // namespace sluice::rkllm

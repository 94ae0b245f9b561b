#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/executor.hpp"

namespace sluice {

/// One turn of a conversation. `role` is "system", "user", "assistant" or "tool".
struct ChatMessage {
  std::string role;
  std::string content;
};

/// How the next token is chosen. The defaults are llama.cpp's own.
struct SamplingParams {
  /// 0: always the likeliest token. Absent: what the model's file recommends, or 0.8.
  std::optional<float> temperature;
  int top_k = 40;       // 0: off
  float top_p = 0.95F;  // 1: off
  float min_p = 0.05F;  // 0: off
  float repeat_penalty = 1.0F;
  float frequency_penalty = 0.0F;
  float presence_penalty = 0.0F;
  int penalty_last_n = 64;            // -1: the whole context
  std::optional<std::uint32_t> seed;  // absent: drawn from the CSPRNG
};

/// What a model is asked for. Exactly one of `messages` (rendered with the model's chat template)
/// and `prompt` (taken as one user message if the model has a chat template, else as it is).
struct GenerationRequest {
  std::vector<ChatMessage> messages;
  std::string prompt;
  SamplingParams sampling;
  std::optional<int> max_tokens;  // absent: until the model ends or the context is full
  std::vector<std::string> stop;  // the answer ends before the first of these
  std::string json_schema;        // JSON text, or empty: the answer must satisfy it
  std::string grammar;            // GBNF, or empty; not together with json_schema
  std::string tools;              // JSON array of tool definitions for the template, or empty
  int priority = 0;               // among those of one principal: higher is admitted earlier
  std::string principal;          // who asks: shares the engine with others, in turn
  // For the synthetic engine only:
  std::optional<std::int64_t> count;        // chunks to emit
  std::optional<std::int64_t> interval_us;  // pause between chunks; -1: flush each by itself
};

/// A piece of an answer. Text is whole UTF-8 characters.
struct Delta {
  enum class Kind : std::uint8_t { text, reasoning, tool_call };
  Kind kind = Kind::text;
  std::string text;    // for tool_call: one complete call as JSON {"name","arguments"}
  bool flush = false;  // hand it to the readers now instead of at the end of the loop's turn
};

struct Usage {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t cached_tokens = 0;  // of the prompt, taken from an earlier sequence
  std::uint32_t completion_tokens = 0;
};

struct Timings {
  std::chrono::microseconds queue{};    // from start() to admission
  std::chrono::microseconds prefill{};  // to the first sampled token
  std::chrono::microseconds decode{};   // from the first token to the last
};

/// How a generation ended. `error` says why if it failed; then the rest may be partial.
struct Completion {
  enum class Reason : std::uint8_t { stop, length, tool_calls, cancelled, error };
  Reason reason = Reason::stop;
  Usage usage;
  Timings timings;
  std::optional<Error> error;
};

/// "stop", "length", "tool_calls", "cancelled", "error".
std::string_view to_string(Completion::Reason reason);

/// Where a generation stands, for is_running and for progress reports.
struct GenerationStatus {
  enum class Phase : std::uint8_t { queued, prefill, decode, done };
  Phase phase = Phase::queued;
  std::uint32_t queue_position = 0;  // 0: next
  std::uint32_t prefill_done = 0;    // tokens
  std::uint32_t prefill_total = 0;
  std::uint32_t completion_tokens = 0;
};

/// Receives an answer. The engine calls it from one thread at a time, in order, and never after
/// on_complete has returned; it never blocks the engine.
class GenerationSink {
 public:
  virtual ~GenerationSink() = default;
  /// Takes `delta`. False: taken, but the sink is full now - the engine must not deliver more
  /// until Generation::resume() has been called (its slot meanwhile serves others).
  virtual bool on_delta(Delta delta) = 0;
  /// The last call, exactly once, also after cancel().
  virtual void on_complete(Completion completion) = 0;
};

/// A running generation. Destroying it cancels it. All members are thread-safe and do not block.
class Generation {
 public:
  virtual ~Generation() = default;
  /// Stops within one token, also while queued or in prefill. Idempotent.
  virtual void cancel() = 0;
  /// The sink has room again.
  virtual void resume() = 0;
  [[nodiscard]] virtual GenerationStatus status() const = 0;
};

struct EngineInfo {
  std::string engine;  // "llama", "synthetic"
  std::string model;   // the model's name, for people
  std::uint64_t parameters = 0;
  std::uint32_t context_tokens = 0;  // of one sequence
  std::uint32_t slots = 0;           // sequences decoded together
};

/// What can be counted of an engine; all since its start unless said otherwise.
struct EngineStats {
  std::uint32_t slots_busy = 0;       // now
  std::uint32_t requests_queued = 0;  // now
  std::uint64_t requests = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t cached_tokens = 0;
  std::uint64_t completion_tokens = 0;
};

/// A model as the rest of the system sees it. Thread-safe. Must outlive its generations.
class Engine {
 public:
  virtual ~Engine() = default;
  /// Queues `request`. `home` is the loop that the sink belongs to: an engine without threads of
  /// its own runs there; others ignore it. Called on home's thread; never waits for the model.
  /// Errors: -32602 for a request that can never be served (no prompt, bad schema or grammar,
  /// prompt longer than the context), kBusy when the queue is full or the engine is not ready.
  virtual Result<std::unique_ptr<Generation>> start(GenerationRequest request,
                                                    std::shared_ptr<GenerationSink> sink,
                                                    Executor& home) = 0;
  [[nodiscard]] virtual EngineInfo info() const = 0;
  [[nodiscard]] virtual EngineStats stats() const = 0;
  /// Cancels everything and waits until no sink will be called again.
  virtual void shutdown() = 0;
};

}  // namespace sluice

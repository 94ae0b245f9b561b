#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/executor.hpp"
#include "engine/model_change.hpp"
#include "engine/model_input.hpp"
#include "sluice/chat.hpp"

namespace sluice {

/// The bytes of all texts of `message`, and of its images in Base64.
std::size_t text_bytes(const ChatMessage& message);

/// The most bytes of a tool's name.
inline constexpr std::size_t kMaxToolName = 256;
/// The most bytes of the id of a call.
inline constexpr std::size_t kMaxCallId = 256;

/// The most microseconds between two chunks of the synthetic engine.
inline constexpr std::int64_t kMaxIntervalUs = 60'000'000;

class Generation;

/// What to ask a model for. Exactly one of `messages`, `prompt` and `input` is set. Messages are
/// rendered with the model's chat template. A prompt is used as one user message if the model has a
/// chat template, and unchanged otherwise.
struct GenerationRequest {
  std::vector<ChatMessage> messages;
  std::string prompt;
  /// The prompt is all that the model sees: no template is put around it, and texts of control
  /// tokens in it are those tokens. An engine that cannot leave the template out refuses it.
  bool is_raw = false;
  SamplingParams sampling;
  std::optional<int> max_tokens;  // absent: until the model stops or the context is full
  std::vector<std::string> stop;  // the answer ends before the first of these strings
  std::string json_schema;        // JSON text of a schema that the answer must satisfy, or empty
  std::string grammar;            // GBNF, or empty; must be empty if json_schema is set
  std::string tools;              // JSON array of tool definitions, or empty
  bool stream_calls = false;      // also deliver calls as they come: Delta::Kind::tool_call_part
  int priority = 0;               // among requests of one principal; higher is admitted earlier
  std::string principal;          // who asks; principals are served in turn
  /// The only one for whom what the engine keeps of the prompt on disk may be used: the principal,
  /// if nobody else can have its name. Empty: nothing is kept there.
  std::string cache_owner;
  /// The generation of the same principal that `messages` go on from, or null: they are those of
  /// its request, its answer, and then `new_messages` others. It must have ended. An engine that
  /// still has the sequence of its tokens may append the new messages to it, so that nothing else
  /// is computed again. The model then sees its answer as it has written it, with its reasoning.
  /// Otherwise all of `messages` are what it sees.
  std::shared_ptr<const Generation> continues;
  std::size_t new_messages = 0;
  /// Whether `continues` of a later request may be this one's generation, which then keeps its
  /// tokens as long as it lives: at most 4 bytes for each of the context.
  bool keeps_sequence = false;
  std::string lora_adapter;  // the name of one that was loaded (LoadLora); empty: none is used
  /// A file for the prompt, which is saved there (LoadPromptCache reads it); empty: it is not. An
  /// engine that has no such files refuses it.
  std::string prompt_cache;
  /// In place of texts. Such a request, and one that yields no text, has no tools, json_schema or
  /// grammar. Both are for engines with EngineInfo::takes_inputs.
  std::shared_ptr<const ModelInput> input;
  Yield yields = Yield::text;
  // Used by the synthetic engine only:
  std::optional<std::int64_t> count;  // chunks to emit
  std::optional<std::int64_t>
      interval_us;  // microseconds between chunks; -1: no pause, flush each chunk separately
};

/// Which call of a tool a delta is about. The id is unique in the answer; the engine makes one up
/// where the model or its server gives none.
struct CallHead {
  std::string id;
  std::string name;
};

/// A piece of an answer. The text consists of complete UTF-8 characters.
struct Delta {
  enum class Kind : std::uint8_t {
    text,
    reasoning,
    tool_call,       // one complete call, as JSON {"name","arguments"}
    tool_call_part,  // the next piece of a call's arguments, as the model writes them
    members          // what is yielded besides text, once in an answer: members of a JSON object
  };
  Kind kind = Kind::text;
  std::string text;
  bool flush = false;  // pass it to the readers now, not at the end of the loop's turn
  /// The call of a tool_call or tool_call_part; all deltas of a call have the same object. Null for
  /// other kinds.
  std::shared_ptr<const CallHead> call = nullptr;
};

struct Usage {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t cached_tokens = 0;  // prompt tokens that were reused from an earlier sequence
  std::uint32_t completion_tokens = 0;
  std::uint32_t reasoning_tokens = 0;  // of the completion tokens, as far as the engine tells
};

struct Timings {
  std::chrono::microseconds queue{};    // from start() to admission
  std::chrono::microseconds prefill{};  // from admission to the first sampled token
  std::chrono::microseconds decode{};   // from the first token to the last
};

/// How a generation ended. If it failed, `error` says why, and the other values may be incomplete.
struct Completion {
  enum class Reason : std::uint8_t { stop, length, tool_calls, cancelled, error };
  Reason reason = Reason::stop;
  Usage usage;
  Timings timings;
  std::optional<Error> error;
  std::string server_data = {};  // for the message of the answer: ChatMessage::server_data
};

/// "stop", "length", "tool_calls", "cancelled", "error".
std::string_view to_string(Completion::Reason reason);

/// The progress of a generation, for is_running and for progress reports.
struct GenerationStatus {
  enum class Phase : std::uint8_t { queued, prefill, decode, done };
  Phase phase = Phase::queued;
  std::uint32_t queue_position = 0;  // 0: next
  std::uint32_t prefill_done = 0;    // tokens
  std::uint32_t prefill_total = 0;
  std::uint32_t completion_tokens = 0;
};

/// Receives an answer: its text, reasoning and calls of tools, each in the order of the model. If
/// the request has `stream_calls`, an engine that can delivers the arguments of calls in parts
/// too. Parts are a preview: only a tool_call says that the call is whole, and its arguments hold
/// even if the parts were others. Calls are delivered when the answer is over, before on_complete.
///
/// The engine calls it in order, from one thread at a time, and never after
/// on_complete has returned. A sink must not block the engine.
class GenerationSink {
 public:
  virtual ~GenerationSink() = default;
  /// Takes `delta`. Returns false if the sink is now full; `delta` has been taken, but the engine
  /// must not deliver more until Generation::resume() is called. Meanwhile the engine's slot serves
  /// others.
  virtual bool on_delta(Delta delta) = 0;
  /// The last call. It is made exactly once, even after cancel().
  virtual void on_complete(Completion completion) = 0;
};

/// A running generation. Its destructor cancels it. All members are thread-safe and do not block.
class Generation {
 public:
  virtual ~Generation() = default;
  /// Stops the generation within one token, even while it is queued or in prefill. Idempotent.
  virtual void cancel() = 0;
  /// Tells the engine that the sink has room again.
  virtual void resume() = 0;
  [[nodiscard]] virtual GenerationStatus status() const = 0;
  /// Whether it has ended and a later request may go on from it (GenerationRequest::continues).
  [[nodiscard]] virtual bool keeps_sequence() const { return false; }
};

struct EngineInfo {
  std::string engine;  // "llama", "synthetic"
  std::string model;   // human-readable name of the model
  std::uint64_t parameters = 0;
  std::uint32_t context_tokens = 0;  // of one sequence
  std::uint32_t slots = 0;           // sequences that are decoded together
  /// Why a json_schema is checked when the answer is whole, and not followed by each token; empty:
  /// it is followed.
  std::string checks_schema = {};
  bool takes_images = false;  // whether it passes ChatMessage::images on to the model
  bool alternates = false;    // whether its template refuses two messages of a user in a row
  bool takes_inputs = false;  // GenerationRequest::input, and what it yields besides text
  // What change() takes, besides what a model of its kind may lack:
  bool loads_adapters = false;
  bool loads_prompt_caches = false;
  bool takes_cross_attention = false;
};

/// Of an engine that keeps what it has computed of prompts in files.
struct PromptCacheStats {
  std::uint64_t hits = 0;    // prompts that were read with the help of a file
  std::uint64_t misses = 0;  // those for which there was none
  std::uint64_t bytes = 0;   // of the files; a current value
};

/// Statistics of an engine, counted since its start unless marked as current values.
struct EngineStats {
  std::uint32_t slots_busy = 0;       // current value
  std::uint32_t requests_queued = 0;  // current value
  std::uint64_t requests = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t cached_tokens = 0;
  std::uint64_t completion_tokens = 0;
  std::optional<PromptCacheStats> prompt_caches = {};
};

/// A model, as the rest of the system uses it. Thread-safe. Must outlive its generations.
class Engine {
 public:
  virtual ~Engine() = default;
  /// Queues `request`. `home` is the loop that the sink belongs to: an engine without threads of
  /// its own runs there, others ignore it. Must be called on home's thread. Never waits for the
  /// model. Errors: -32602 for a request that can never be served (no prompt, a value out of
  /// range); kBusy if the queue is full or the engine is not ready. What takes time to find, such
  /// as an invalid grammar or a prompt longer than the context, is reported with on_complete.
  virtual Result<std::unique_ptr<Generation>> start(GenerationRequest request,
                                                    std::shared_ptr<GenerationSink> sink,
                                                    Executor& home) = 0;
  /// Changes the model for the requests that are started after `then` was told of success. One
  /// that is under way is not touched. `then` may wait for its end, and is not called within this,
  /// except for a change that the engine never takes.
  virtual void change(ModelChange change, ChangeDone then);
  [[nodiscard]] virtual EngineInfo info() const = 0;
  [[nodiscard]] virtual EngineStats stats() const = 0;
  /// Cancels all generations and waits until no sink will be called again.
  virtual void shutdown() = 0;
};

}  // namespace sluice

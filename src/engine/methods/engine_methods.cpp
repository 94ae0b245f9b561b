#include "engine/methods/engine_methods.hpp"

#include <memory>
#include <optional>
#include <utility>

#include "core/clock.hpp"
#include "core/log/over_limit.hpp"
#include "core/sharing/client_memory.hpp"
#include "engine/generation_params.hpp"
#include "engine/generation_producer.hpp"
#include "engine/methods/function_table.hpp"
#include "engine/methods/model_sessions.hpp"
#include "engine/methods/run_call.hpp"
#include "protocol/parameters.hpp"
#include "protocol/stream_params.hpp"
#include "rpc/error_codes.hpp"
#include "server/calls/pending_request.hpp"
#include "server/host/metrics_text.hpp"
#include "server/streams/text_accumulator.hpp"

namespace sluice {
namespace {

ChunkKind chunk_kind(Delta::Kind kind) {
  switch (kind) {
    case Delta::Kind::text:
      return ChunkKind::text;
    case Delta::Kind::reasoning:
      return ChunkKind::reasoning;
    case Delta::Kind::tool_call:
      return ChunkKind::tool_call;
    case Delta::Kind::members:
      return ChunkKind::members;
    case Delta::Kind::tool_call_part:
      break;  // nobody here asks for parts
  }
  return ChunkKind::text;
}

/// About how much memory a request keeps.
std::size_t memory_of(const GenerationRequest& request) {
  std::size_t bytes = request.prompt.size() + request.json_schema.size() + request.grammar.size() +
                      request.tools.size();
  if (request.input != nullptr) bytes += bytes_of(*request.input);
  for (const std::string& stop : request.stop) bytes += sizeof stop + stop.size();
  for (const ChatMessage& message : request.messages) {
    bytes +=
        sizeof message + message.tool_calls.size() * sizeof(ChatToolCall) + text_bytes(message);
  }
  return bytes;
}

/// Takes the memory of a request from its client's share, unless it is little. Leaves room there
/// for the answers in progress. Error: kLimitReached if the share does not have it.
Result<std::unique_ptr<MemoryHold>> hold_while_waiting(const std::shared_ptr<MemoryShare>& share,
                                                       const GenerationRequest& request) {
  const std::size_t bytes = memory_of(request);
  if (bytes <= CoarseHold::kFree) return nullptr;
  auto hold = std::make_unique<MemoryHold>(share);
  if (!share->is_short(bytes) && hold->add(bytes)) return hold;
  return over_limit(
      "Your streams, calls and waiting prompts have used all the memory that one client may have, "
      "and there is none "
      "for this prompt; wait for some, or raise streams.max_total_bytes");
}

/// Delivers a generation as the chunks of a stream.
class StreamGeneration final : public GenerationProducer {
 public:
  /// `waiting` is what the request holds until the answer begins; null: nothing. `turn` is kept in
  /// a session; null: it is not.
  StreamGeneration(std::shared_ptr<ChunkStream> stream, std::unique_ptr<MemoryHold> waiting,
                   std::unique_ptr<ModelSession::Turn> turn)
      : GenerationProducer(stream->executor()),
        stream_(std::move(stream)),
        waiting_(std::move(waiting)),
        turn_(std::move(turn)) {}
  ~StreamGeneration() override {
    if (stream_ != nullptr && !stream_->ended()) stream_->set_producer(nullptr);
  }
  StreamGeneration(const StreamGeneration&) = delete;
  StreamGeneration& operator=(const StreamGeneration&) = delete;

 private:
  bool append(const Delta& delta) override {
    waiting_ = nullptr;
    if (turn_ != nullptr) turn_->append(delta);
    return stream_->append(chunk_kind(delta.kind), delta.text) || stream_->ended();
  }
  void flush() override { stream_->flush(); }
  void complete(const Completion& completion) override {
    const std::shared_ptr<ChunkStream> stream = std::move(stream_);
    waiting_ = nullptr;
    // Whoever has heard of the end may begin the next turn.
    if (const auto turn = std::move(turn_)) turn->end(completion);
    if (completion.error) {
      stream->fail(*completion.error, completion_members(completion));
    } else {
      stream->finish(completion_members(completion));
    }
  }

  std::shared_ptr<ChunkStream> stream_;  // null once the generation has ended
  std::unique_ptr<MemoryHold> waiting_;
  std::unique_ptr<ModelSession::Turn> turn_;
};

/// Delivers a generation as the progress and the result of a tool call.
class CallGeneration final : public GenerationProducer {
 public:
  /// `keep_text`: whether the result repeats the text that progress messages have shown. `waiting`
  /// and `turn` are as for a StreamGeneration.
  CallGeneration(std::shared_ptr<PendingRequest> call, bool keep_text,
                 std::unique_ptr<MemoryHold> waiting, std::unique_ptr<ModelSession::Turn> turn)
      : GenerationProducer(call->executor()),
        call_(std::move(call)),
        keep_text_(keep_text),
        waiting_(std::move(waiting)),
        turn_(std::move(turn)) {}

 private:
  bool append(const Delta& delta) override {
    waiting_ = nullptr;
    const bool is_text = delta.kind == Delta::Kind::text;
    if (turn_ != nullptr) turn_->append(delta);
    if (is_text && !keep_text_) return call_->emit(delta.text);
    if (call_->over()) return true;
    if (kept_ == nullptr) kept_ = std::make_unique<Kept>(call_->memory());
    if (is_text) return keep(kept_->text, delta.text) && call_->emit(delta.text);
    if (delta.kind == Delta::Kind::members) {
      return keep(kept_->members, ",") && keep(kept_->members, delta.text);
    }
    if (delta.kind != Delta::Kind::tool_call) return keep(kept_->reasoning, delta.text);
    return (kept_->tool_calls.empty() || keep(kept_->tool_calls, ",")) &&
           keep(kept_->tool_calls, delta.text);
  }
  void flush() override { call_->flush(); }

  void complete(const Completion& completion) override {
    const std::shared_ptr<PendingRequest> call = std::move(call_);
    const std::unique_ptr<Kept> kept = std::move(kept_);
    call->set_producer(nullptr);
    if (const auto turn = std::move(turn_)) turn->end(completion);
    if (completion.error) {
      call->complete({.text = completion.error->message, .is_error = true});
      return;
    }
    std::string structured = "{";
    structured.append(completion_members(completion));
    if (kept != nullptr && !kept->reasoning.empty()) {
      structured.append(R"(,"reasoning":)");
      append_json_string(structured, kept->reasoning.take());
    }
    if (kept != nullptr && !kept->tool_calls.empty()) {
      structured.append(R"(,"tool_calls":[)").append(kept->tool_calls.take()).append("]");
    }
    if (kept != nullptr) structured.append(kept->members.take());
    structured.push_back('}');
    ToolResult result{.text = kept == nullptr ? std::string() : kept->text.take(),
                      .structured_text = std::move(structured)};
    // Without any text, the structured content would be written as the text.
    if (result.text.empty()) result.content.push_back(Content::text(""));
    call->complete(std::move(result));
  }

  /// What the result will contain.
  struct Kept {
    explicit Kept(const std::shared_ptr<MemoryShare>& memory)
        : text(memory), reasoning(memory), tool_calls(memory), members(memory) {}
    TextAccumulator text;
    TextAccumulator reasoning;
    TextAccumulator tool_calls;  // JSON, separated by commas
    TextAccumulator members;     // each after a comma
  };

  /// Returns false if there is no memory for `text`, or if it is too long; the call has then
  /// failed.
  bool keep(TextAccumulator& to, std::string_view text) {
    const bool is_kept = to.append(text);
    if (is_kept && !to.is_too_long()) return true;
    call_->abandon(is_kept ? too_long() : TextAccumulator::no_memory());
    return false;
  }
  static Error too_long() {
    return {kLimitReached,
            "The answer is too long for a tool's result; use run instead, or lower max_tokens",
            {}};
  }

  std::shared_ptr<PendingRequest> call_;  // null once the call has ended
  bool keep_text_;
  std::unique_ptr<MemoryHold> waiting_;
  std::unique_ptr<ModelSession::Turn> turn_;
  std::unique_ptr<Kept> kept_;  // null while nothing is kept
};

/// What all runs share.
struct RunContext {
  Engine& engine;
  ModelSessions sessions;
  OperatorRights rights;
};

/// What a run uses that only some engines have. Only operators name files.
Result<void> prepare_extras(RunCall& run, const RunContext& context, const Principal& caller) {
  const bool is_usual = run.request.input == nullptr && run.request.yields == Yield::text;
  if (is_usual && run.prompt_cache.empty() && run.request.lora_adapter.empty()) return {};
  const EngineInfo info = context.engine.info();
  const auto refuse = [&info](std::string_view what) {
    return fail(kInvalidParams, "Invalid params: " + std::string(what) +
                                    ": not with this engine (" + info.engine + ")");
  };
  if (!is_usual && !info.takes_inputs) {
    return refuse(run.request.input != nullptr ? "input_type other than RKLLM_INPUT_PROMPT"
                                               : "mode other than RKLLM_INFER_GENERATE");
  }
  if (!run.request.lora_adapter.empty() && !info.loads_adapters) return refuse("lora_params");
  if (run.prompt_cache.empty()) return {};
  constexpr std::string_view kPath = "prompt_cache_path";
  if (!info.loads_prompt_caches) return refuse("prompt_cache_params");
  if (Result<void> may = context.rights.check(caller, kPath); !may) return may;
  const Result<const ModelFolder*> folder = context.rights.folder_for(kPath);
  if (!folder) return std::unexpected(folder.error());
  Result<std::string> place = (*folder)->place_for(kPath, run.prompt_cache);
  if (!place) return std::unexpected(std::move(place.error()));
  run.request.prompt_cache = *std::move(place);
  return {};
}

/// What was set and said in the caller's session goes into the run. Returns the turn that it keeps,
/// or null.
Result<std::unique_ptr<ModelSession::Turn>> prepare(RunCall& run, const RunContext& context,
                                                    const json::object& params,
                                                    const MethodCaller& caller) {
  if (Result<void> extras = prepare_extras(run, context, caller.principal); !extras) {
    return std::unexpected(std::move(extras.error()));
  }
  const Result<std::shared_ptr<ModelSession>> session = context.sessions.find(params, caller);
  if (!session) return std::unexpected(session.error());
  Result<std::unique_ptr<ModelSession::Turn>> turn = nullptr;
  if (*session != nullptr) {
    turn = (*session)->prepare(run);
  } else if (run.keep_history) {
    return fail(
        kInvalidParams,
        ModelSessions::has_own_place(caller)
            ? "Invalid params: keep_history needs a session; call init first"
            : "Invalid params: keep_history needs a session, and handle_id is missing; call "
              "init, and pass the handle_id that it returns");
  }
  apply(run.settings, run.request);
  return turn;
}

/// Others may have the same address, now or later.
std::string cache_owner_of(const Principal& caller) {
  return caller.isolated ? caller.id : std::string();
}

Result<void> run(const RunContext& context, const json::object& params, const MethodCaller& caller,
                 const std::shared_ptr<ChunkStream>& stream) {
  Result<RunCall> call = decode_run_call(params);
  if (!call) return std::unexpected(std::move(call.error()));
  Result<std::unique_ptr<ModelSession::Turn>> turn = prepare(*call, context, params, caller);
  if (!turn) return std::unexpected(std::move(turn.error()));
  call->request.principal = stream->principal();
  call->request.cache_owner = cache_owner_of(caller.principal);
  Result<std::unique_ptr<MemoryHold>> waiting =
      hold_while_waiting(stream->memory_share(), call->request);
  if (!waiting) return std::unexpected(std::move(waiting.error()));
  const auto producer =
      std::make_shared<StreamGeneration>(stream, *std::move(waiting), *std::move(turn));
  stream->set_producer(producer.get());
  return producer->start(context.engine, std::move(call->request));
}

Result<void> generate(Engine& engine, GenerationRequest request,
                      std::shared_ptr<PendingRequest> call, bool keep_text,
                      std::unique_ptr<ModelSession::Turn> turn = nullptr) {
  request.principal = call->principal().id;
  request.cache_owner = cache_owner_of(call->principal());
  Result<std::unique_ptr<MemoryHold>> waiting = hold_while_waiting(call->memory(), request);
  if (!waiting) return std::unexpected(std::move(waiting.error()));
  const auto producer =
      std::make_shared<CallGeneration>(call, keep_text, *std::move(waiting), std::move(turn));
  call->set_producer(producer.get());
  Result<void> started = producer->start(engine, std::move(request));
  if (!started) call->set_producer(nullptr);
  return started;
}

Tool generating_tool(const char* name, std::string schema,
                     std::shared_ptr<const RunContext> context) {
  return {.name = name,
          .description =
              "Answers a prompt with the model, streaming its text as progress messages; "
              "with stream_id, follows an answer that was started by run",
          .input_schema = std::move(schema),
          .handler = Tool::Deferred(
              [context = std::move(context)](const json::object& arguments,
                                             std::shared_ptr<PendingRequest> call) -> Result<void> {
                if (is_poll(arguments)) {
                  const Result<std::string> stream_id = decode_stream_id(arguments);
                  if (!stream_id) return std::unexpected(stream_id.error());
                  call->follow(*stream_id);
                  return {};
                }
                Result<RunCall> run = decode_run_call(arguments);
                if (!run) return std::unexpected(std::move(run.error()));
                const Principal caller = named_caller(call->principal());
                Result<std::unique_ptr<ModelSession::Turn>> turn =
                    prepare(*run, *context, arguments, {.principal = caller, .storage = {}});
                if (!turn) return std::unexpected(std::move(turn.error()));
                return generate(context->engine, std::move(run->request), std::move(call), true,
                                *std::move(turn));
              })};
}

std::string engine_metrics(const Engine& engine) {
  const EngineStats stats = engine.stats();
  const EngineInfo info = engine.info();
  std::string out;
  append_metric(out, "sluice_engine_slots", "gauge", "Sequences that the engine decodes together.",
                info.slots);
  append_metric(out, "sluice_engine_checks_schema", "gauge",
                "1: a json_schema is checked when an answer is whole; 0: each token follows it.",
                info.checks_schema.empty() ? 0 : 1);
  append_metric(out, "sluice_engine_slots_busy", "gauge", "Slots that are generating.",
                stats.slots_busy);
  append_metric(out, "sluice_engine_requests_queued", "gauge", "Generations waiting for a slot.",
                stats.requests_queued);
  append_metric(out, "sluice_engine_requests_total", "counter", "Generations requested.",
                stats.requests);
  append_metric(out, "sluice_engine_cancelled_total", "counter", "Generations cancelled.",
                stats.cancelled);
  append_metric(out, "sluice_engine_prompt_tokens_total", "counter", "Prompt tokens.",
                stats.prompt_tokens);
  append_metric(out, "sluice_engine_cached_tokens_total", "counter",
                "Prompt tokens reused from an earlier sequence.", stats.cached_tokens);
  append_metric(out, "sluice_engine_completion_tokens_total", "counter", "Tokens generated.",
                stats.completion_tokens);
  if (const auto& caches = stats.prompt_caches) {
    append_metric(out, "sluice_engine_prompt_cache_hits_total", "counter",
                  "Prompts that were read with the help of a file.", caches->hits);
    append_metric(out, "sluice_engine_prompt_cache_misses_total", "counter",
                  "Long prompts for which there was no file.", caches->misses);
    append_metric(out, "sluice_engine_prompt_cache_bytes", "gauge", "Bytes of these files.",
                  caches->bytes);
  }
  return out;
}

}  // namespace

void add_engine_methods(ServerDefinition& definition, Engine& engine, FunctionOptions options) {
  static const SteadyClock kClock;
  const auto context = std::make_shared<RunContext>(
      RunContext{.engine = engine, .sessions = ModelSessions(kClock), .rights = options.rights});
  const auto sessions = std::shared_ptr<ModelSessions>(context, &context->sessions);
  const auto add_run = [&](const char* name, bool streams) {
    definition.stream_methods.push_back(
        {.name = name,
         .handler =
             [context](const json::object& params, const MethodCaller& caller,
                       const std::shared_ptr<ChunkStream>& stream) {
               return run(*context, params, caller, stream);
             },
         .status = [](const ChunkStream& stream) -> std::string {
           const auto* const producer = dynamic_cast<const GenerationProducer*>(stream.producer());
           return producer == nullptr ? std::string() : status_members(producer->status());
         },
         .streams = streams});
  };
  for (const char* const name : {"run", "rkllm_run", "rkllm.run"}) add_run(name, false);
  for (const char* const name : {"run_async", "rkllm_run_async", "rkllm.run_async"}) {
    add_run(name, true);
  }
  definition.tools.push_back(generating_tool("generate", generation_schema(), context));
  if (options.offers_tools) {
    definition.tools.push_back(generating_tool("rkllm_run", run_schema(), context));
  }
  add_engine_functions(definition, engine, sessions, std::move(options));
  definition.metrics = [&engine] { return engine_metrics(engine); };
}

void add_load_test_tools(ServerDefinition& definition, Engine& engine) {
  definition.tools.push_back(
      {.name = "echo",
       .description = "Returns its text",
       .input_schema = R"({"type":"object","properties":{"text":{"type":"string"}},)"
                       R"("required":["text"]})",
       .handler = Tool::Immediate([](const json::object& arguments) -> Result<ToolResult> {
         return ToolResult{.text = std::string(arguments.at("text").as_string())};
       })});
  definition.tools.push_back(
      {.name = "stream_numbers",
       .description = "Emits numbered progress messages, each with the time at which it was made",
       .input_schema = R"({"type":"object","properties":{)"
                       R"("count":{"type":"integer","minimum":0,"maximum":1000000000},)"
                       R"("interval_ms":{"type":"integer","minimum":-1,"maximum":)" +
                       std::to_string(kMaxIntervalUs / 1000) +
                       R"(},"interval_us":{"type":"integer","minimum":-1,"maximum":)" +
                       std::to_string(kMaxIntervalUs) + "}}}",
       .handler = Tool::Deferred([&engine](const json::object& arguments,
                                           std::shared_ptr<PendingRequest> call) -> Result<void> {
         // Only what is used is copied: the schema allows other members, however many.
         json::object params;
         for (const char* const name : {"count", "interval_us"}) {
           if (const json::value* const given = arguments.if_contains(name)) params[name] = *given;
         }
         if (const json::value* interval = arguments.if_contains("interval_ms")) {
           const std::optional<std::int64_t> ms = integer_of(*interval);
           if (!ms || *ms < -1 || *ms > kMaxIntervalUs / 1000) {
             return fail(kInvalidParams,
                         "Invalid params: interval_ms must be an integer from -1 to 60000");
           }
           params["interval_us"] = *ms < 0 ? -1 : *ms * 1000;
         }
         Result<GenerationRequest> request = decode_generation(params);
         if (!request) return std::unexpected(std::move(request.error()));
         return generate(engine, std::move(*request), std::move(call), false);
       }),
       .task_support = TaskSupport::optional});
}

}  // namespace sluice

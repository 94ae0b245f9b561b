#include "cli/serve/engine_factory.hpp"

#include <filesystem>
#include <system_error>
#include <utility>

#include "cli/options/exit_code.hpp"
#include "cli/options/process_environment.hpp"
#include "cli/serve/npu_engine.hpp"
#include "cli/serve/remote_engine.hpp"
#include "core/log/log.hpp"
#include "engine/chat/tokenizer_files.hpp"
#include "engine/synthetic_engine.hpp"

#if SLUICE_WITH_LLAMA
#include "engine/llama/llama_engine.hpp"
#include "engine/llama/model/gguf_check.hpp"
#endif

namespace sluice {
namespace {

/// An engine that can answer from the beginning.
EngineHandle ready(std::unique_ptr<Engine> engine) {
  EngineHandle handle;
  handle.engine = std::move(engine);
  handle.not_ready = [] { return std::string(); };
  handle.wait_ready = [](Duration) { return Result<bool>(true); };
  return handle;
}

Result<EngineHandle> npu_engine(const ServeConfig& config, LoopPool* loops) {
  Result<std::unique_ptr<rkllm::RkllmEngine>> made = make_npu_engine(config.engine, loops);
  if (!made) return std::unexpected(std::move(made.error()));
  rkllm::RkllmEngine* const npu = made->get();
  EngineHandle handle;
  handle.engine = std::move(*made);
  handle.not_ready = [npu] { return npu->not_ready(); };
  handle.wait_ready = [npu](Duration at_most) -> Result<bool> {
    Result<bool> is_ready = npu->wait_ready(at_most);
    if (!is_ready) return fail(kExitFailure, is_ready.error().message);
    return is_ready;
  };
  handle.leave_loops = [npu] { npu->leave_loop(); };
  return handle;
}

#if SLUICE_WITH_LLAMA
void log_model_state(const ModelState& state) {
  switch (state.phase) {
    case ModelState::Phase::loading:
      log_debug("loading the model", {{"progress", static_cast<double>(state.progress)}});
      break;
    case ModelState::Phase::ready:
      log_debug("the model is ready");
      break;
    case ModelState::Phase::failed:
      break;  // reported by whoever waits for the model
  }
}

LlamaOptions llama_options(const ServeConfig& config) {
  LlamaOptions options;
  options.model_path = config.engine.model.empty() ? built_in_model() : config.engine.model;
  options.slots = config.engine.sequences();
  options.context_tokens = config.engine.context;
  options.threads = config.engine.threads;
  options.backend = config.engine.backend;
  options.gpu_layers = config.engine.gpu_layers;
  options.max_queue = config.engine.queue;
  options.share_prefixes = config.engine.share_prefixes;
  return options;
}

Result<EngineHandle> llama_engine(const ServeConfig& config) {
  LlamaOptions options = llama_options(config);
  if (options.model_path.empty()) {
    return fail(kExitUsage, "No model: give one with --model FILE.gguf, or use --engine synthetic");
  }
  if (!config.engine.chat_template.empty()) {
    auto chat_template = read_chat_template(config.engine.chat_template);
    if (!chat_template) return fail(kExitFailure, chat_template.error().message);
    options.chat_template = *std::move(chat_template);
  }
  options.on_model_state = log_model_state;
  std::unique_ptr<LlamaEngine> engine = make_llama_engine(std::move(options));
  LlamaEngine* const llama = engine.get();
  EngineHandle handle;
  handle.engine = std::move(engine);
  handle.not_ready = [llama]() -> std::string {
    const ModelState state = llama->model_state();
    switch (state.phase) {
      case ModelState::Phase::ready:
        return {};
      case ModelState::Phase::failed:
        return state.message;
      case ModelState::Phase::loading:
        break;
    }
    return "loading the model, " + std::to_string(static_cast<int>(state.progress * 100)) + " %";
  };
  handle.wait_ready = [llama](Duration at_most) -> Result<bool> {
    const ModelState state = llama->wait_until_loaded(at_most);
    if (state.phase != ModelState::Phase::failed) return state.phase == ModelState::Phase::ready;
    return fail(kExitFailure, state.message.empty() ? "The model was not loaded" : state.message);
  };
  return handle;
}
#else
constexpr const char* kNoLlama = "This program was built without llama.cpp; use --engine synthetic";
#endif

}  // namespace

std::string built_in_model() {
  const std::string self = program_path();
  if (self.empty()) return {};
  // The models of bin/sluice are in share/sluice, both in the build tree and after installation.
  const std::filesystem::path share =
      std::filesystem::path(self).parent_path().parent_path() / "share" / "sluice";
  std::error_code error;
  const std::filesystem::path model = share / "sluice-tiny.gguf";
  return std::filesystem::exists(model, error) ? model.string() : std::string();
}

bool runs_built_in_model(const ServeConfig& config) {
  return config.engine.kind == EngineKind::llama && config.engine.model.empty();
}

Result<void> check_backend([[maybe_unused]] const ServeConfig& config) {
#if SLUICE_WITH_LLAMA
  if (const auto device = check_llama_device(config.engine.backend); !device) {
    return fail(kExitUsage, device.error().message);
  }
#endif
  return {};
}

Result<std::uint64_t> check_model_file([[maybe_unused]] const std::string& path) {
#if SLUICE_WITH_LLAMA
  const Result<GgufSummary> summary = check_gguf_file(path);
  if (!summary) return fail(kExitFailure, summary.error().message);
  return summary->tensors;
#else
  return fail(kExitUsage, kNoLlama);
#endif
}

Result<void> check_context([[maybe_unused]] const ServeConfig& config) {
#if SLUICE_WITH_LLAMA
  if (const auto fits = check_llama_context(llama_options(config)); !fits) {
    return fail(kExitFailure, fits.error().message);
  }
#endif
  return {};
}

Result<EngineHandle> make_engine(const ServeConfig& config, LoopPool* loops) {
  if (config.engine.kind == EngineKind::synthetic) {
    return ready(std::make_unique<SyntheticEngine>());
  }
  if (is_remote_model(config.engine.model)) {
    Result<std::unique_ptr<Engine>> engine = make_remote_engine(config.engine);
    if (!engine) return std::unexpected(std::move(engine.error()));
    return ready(*std::move(engine));
  }
  if (is_npu_model(config.engine.model)) return npu_engine(config, loops);
#if SLUICE_WITH_LLAMA
  if (const auto device = check_backend(config); !device) return std::unexpected(device.error());
  return llama_engine(config);
#else
  return fail(kExitUsage, kNoLlama);
#endif
}

}  // namespace sluice

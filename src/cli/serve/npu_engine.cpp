#include "cli/serve/npu_engine.hpp"

#include <string>
#include <utility>

#include "cli/options/exit_code.hpp"
#include "cli/options/process_environment.hpp"
#include "cli/terminal/terminal.hpp"
#include "engine/chat/tokenizer_files.hpp"
#include "engine/rkllm/worker/worker.hpp"
#include "net/http/status_codes.hpp"

#if SLUICE_WITH_LLAMA
#include "engine/llama/chat/answer_schema.hpp"
#include "engine/llama/chat/text_template.hpp"
#endif

namespace sluice {
namespace {

/// The name of an ABI; empty: that of the runtime's version.
std::string named_abi(const ServeConfig::Engine& config) {
  return config.rkllm_abi == "auto" ? std::string() : config.rkllm_abi;
}

}  // namespace

bool is_npu_model(std::string_view model) {
  return model.ends_with(".rkllm");
}

Result<rkllm::LibraryFacts> find_npu_runtime(const ServeConfig::Engine& config) {
  return rkllm::find_runtime(config.rkllm_library, named_abi(config));
}

Result<std::shared_ptr<const ChatTemplate>> npu_chat_template(const ServeConfig::Engine& config) {
  const auto text = find_chat_template(config.model, config.chat_template);
  if (!text) return std::unexpected(text.error());
  if (text->text.empty()) return nullptr;
#if SLUICE_WITH_LLAMA
  return make_chat_template(*text);
#else
  return fail(kNotImplemented,
              "This program was built without llama.cpp, so it cannot use " + text->path);
#endif
}

Result<std::unique_ptr<rkllm::RkllmEngine>> make_npu_engine(const ServeConfig::Engine& config,
                                                            LoopPool* loops) {
  rkllm::RkllmOptions options;
  auto chat_template = npu_chat_template(config);
  if (!chat_template) return fail(kExitFailure, chat_template.error().message);
  options.chat_template = *std::move(chat_template);
#if SLUICE_WITH_LLAMA
  options.schema_grammar = grammar_of_schema;
#endif
  options.model_path = config.model;
  options.library_path = config.rkllm_library;
  options.abi = named_abi(config);
  // Each process has the whole model in memory.
  options.slots = config.slots == 0 ? 1 : config.slots;
  options.context_tokens = config.context;
  options.cross_attention = config.cross_attention;
  options.share_prefixes = config.share_prefixes;
  options.prompt_cache_dir = config.prompt_cache_dir;
  options.prompt_cache_limits.bytes = config.prompt_cache_size;
  options.max_queue = config.queue;
  options.loops = loops;
  options.worker = {program_path(), std::string(kNpuWorkerCommand)};
  auto engine = rkllm::make_rkllm_engine(std::move(options));
  if (!engine) return fail(kExitFailure, engine.error().message);
  return engine;
}

int run_npu_worker() {
  complain(rkllm::run_worker().message);
  return kExitUsage;
}

}  // namespace sluice

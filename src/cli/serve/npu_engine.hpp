#pragma once

#include <memory>
#include <string_view>

#include "cli/options/serve_config.hpp"
#include "core/error.hpp"
#include "engine/rkllm/rkllm_engine.hpp"
#include "engine/rkllm/runtime/library_file.hpp"

namespace sluice {

/// Whether a model is a file for Rockchip's NPU.
bool is_npu_model(std::string_view model);

/// Makes the engine of such a model. Its runtime is loaded in processes of this program that run
/// `kNpuWorkerCommand`. `loops`: those of RkllmOptions. Errors carry an exit code.
Result<std::unique_ptr<rkllm::RkllmEngine>> make_npu_engine(const ServeConfig::Engine& config,
                                                            LoopPool* loops);

/// The chat template of such a model; null: no file has one, so the runtime's own is used. Errors:
/// those of find_chat_template() and make_chat_template(); 501, this program can use none.
Result<std::shared_ptr<const ChatTemplate>> npu_chat_template(const ServeConfig::Engine& config);

/// The runtime that such a model is run with. Errors: those of make_rkllm_engine() that are about
/// its library.
Result<rkllm::LibraryFacts> find_npu_runtime(const ServeConfig::Engine& config);

/// The command of a process that has the runtime in it. Its user is a server; it is in no help.
inline constexpr std::string_view kNpuWorkerCommand = "__rkllm-worker";
/// Runs that command; returns the program's exit code.
int run_npu_worker();

}  // namespace sluice

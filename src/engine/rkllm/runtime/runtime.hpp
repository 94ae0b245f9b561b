#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/error.hpp"
#include "engine/model_input.hpp"
#include "engine/rkllm/abi/abi.hpp"
#include "engine/rkllm/abi/common.hpp"

// librkllmrt as the rest of the engine sees it, whichever version it is. Members have the names of
// the C structs; what a version does not have is left out there.

namespace sluice::rkllm {

struct Sampling {
  std::optional<std::int32_t> top_k = {};
  std::optional<float> top_p = {};
  std::optional<float> temperature = {};
  std::optional<float> repeat_penalty = {};
  std::optional<float> frequency_penalty = {};
  std::optional<float> presence_penalty = {};
  std::optional<std::int32_t> mirostat = {};
  std::optional<float> mirostat_tau = {};
  std::optional<float> mirostat_eta = {};
};

/// RKLLMParam and its RKLLMExtendParam. What is absent stays as rkllm_createDefaultParam() says.
struct ModelParams {
  std::string model_path = {};
  std::optional<std::int32_t> max_context_len = {};
  std::optional<std::int32_t> max_new_tokens = {};
  std::optional<std::int32_t> n_keep = {};  // since 1.2.0
  Sampling sampling = {};
  std::optional<bool> skip_special_token = {};
  std::optional<bool> ignore_eos_token = {};  // since 1.3.0
  std::string img_start = {};                 // before 1.3.0, as are the next two
  std::string img_end = {};
  std::string img_content = {};
  std::optional<std::int32_t> base_domain_id = {};
  std::optional<bool> embed_flash = {};  // since 1.2.0, as are the next two
  std::optional<std::int8_t> enabled_cpus_num = {};
  std::optional<std::uint32_t> enabled_cpus_mask = {};
  std::optional<std::uint8_t> n_batch = {};  // since 1.2.1, as is the next
  std::optional<bool> use_cross_attn = {};
};

/// RKLLMInput.
struct RunInput {
  std::string role = {};  // since 1.2.1, as is the next
  bool enable_thinking = false;
  /// Text, tokens, embeddings, or images with a prompt.
  std::variant<std::string, TokenIds, EmbedData, MultiModalData> input = {};
};

/// RKLLMInferParam.
struct RunParams {
  InferMode mode = InferMode::generate;
  std::string lora_adapter_name = {};  // empty: none
  std::string prompt_cache_path = {};  // empty: none
  bool save_prompt_cache = false;
  bool keep_history = false;  // since 1.2.0
  Sampling sampling = {};     // since 1.3.0, as is the next
  std::optional<std::int32_t> max_new_tokens = {};
};

/// What a run tells. Texts and numbers are valid only until the listener returns.
struct Output {
  CallState state = CallState::normal;
  std::string_view text = {};
  std::int32_t token_id = 0;
  std::span<const float> logits = {};  // num_tokens times vocab_size
  std::int32_t vocab_size = 0;
  std::span<const float> hidden_states = {};  // num_tokens times embd_size
  std::int32_t embd_size = 0;
  std::optional<PerfStat> perf = {};
};

/// Is told of each output, on a thread of the runtime. Must not throw. What it returns is passed on
/// where the version has a way to.
using Listener = std::function<CallbackReturn(const Output& output)>;

/// A loaded librkllmrt and the one model that it holds. Functions return what those of the same
/// name in C do: 0 is success. Nothing: the version does not have the function. One thread at a
/// time, except for abort() and is_running().
class Runtime {
 public:
  Runtime() = default;
  virtual ~Runtime() = default;  // ends the model
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// The runtime reports success, but has no handle. Releases before 1.2.3 do so for bad models.
  static constexpr int kNoHandle = -1000;

  [[nodiscard]] virtual const AbiFacts& abi() const = 0;
  /// Everything but the path is set, as far as the version has it.
  [[nodiscard]] virtual ModelParams default_params() const = 0;
  /// kNoHandle is one more result of it.
  virtual int init(const ModelParams& params) = 0;
  virtual int destroy() = 0;
  /// Waits for the end of the run, or a pause.
  virtual int run(const RunInput& input, const RunParams& params, Listener listener) = 0;
  virtual int abort() = 0;
  /// Versions do not agree on what the result means.
  virtual int is_running() = 0;
  virtual int load_lora(const std::string& path, const std::string& name, float scale) = 0;
  virtual int load_prompt_cache(const std::string& path) = 0;
  virtual int release_prompt_cache() = 0;
  /// `ranges`: pairs of a first and a last position, for each of the batch; empty: everything. They
  /// are passed on since 1.2.1.
  virtual std::optional<int> clear_kv_cache(
      bool keep_system_prompt, std::span<const std::pair<std::int32_t, std::int32_t>> ranges) = 0;
  /// One size for each of the batch.
  virtual std::optional<int> get_kv_cache_size(std::vector<std::int32_t>& sizes) = 0;
  virtual std::optional<int> set_chat_template(const std::string& system, const std::string& prefix,
                                               const std::string& postfix) = 0;
  virtual std::optional<int> set_function_tools(const std::string& system, const std::string& tools,
                                                const std::string& tool_response) = 0;
  virtual std::optional<int> set_cross_attn_params(CrossAttnParam params) = 0;
};

/// Loads the library at `path`, which runs its code, and finds its functions for this ABI. It stays
/// loaded for the rest of the process. Errors: 422, it cannot be loaded or lacks a function.
Result<std::unique_ptr<Runtime>> open_runtime(const std::string& path, Abi abi);

/// The ABI of a library that does not say its version, by how many bytes its
/// rkllm_createDefaultParam() writes and which functions it has. Runs its code: call only in a
/// process that may die. Errors: 422, as above, or it is none that is known.
Result<Abi> probe_abi(const std::string& path);

}  // namespace sluice::rkllm

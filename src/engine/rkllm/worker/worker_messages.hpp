#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/rkllm/runtime/runtime.hpp"
#include "sluice/chat.hpp"

// What a server and a worker say to each other: requests and responses of JSON-RPC 2.0, a line
// each. Methods are the functions of the runtime, `open`, and `test_tokens`, which reads a
// vocabulary and tries whether tokens can be chosen here (token_steps.hpp). Results are `Returned`,
// unless it is said otherwise. Functions that the version does not have are answered with -32601.

namespace sluice::rkllm {

/// The most bytes of a line. Images and embeddings are long.
inline constexpr std::size_t kMaxWorkerLine = std::size_t{256} << 20U;

/// The most bytes of hidden states or logits that an answer may have.
inline constexpr std::size_t kMaxYield = std::size_t{16} << 20U;

namespace method {
inline constexpr std::string_view kOpen = "open";               // OpenParams; the result is Opened
inline constexpr std::string_view kInit = "rkllm_init";         // ModelParams
inline constexpr std::string_view kTestTokens = "test_tokens";  // TestParams; nothing returned
inline constexpr std::string_view kRun = "rkllm_run";           // RunRequest
inline constexpr std::string_view kAbort = "rkllm_abort";       // AbortParams, at any time
inline constexpr std::string_view kIsRunning = "rkllm_is_running";  // nothing, the same
inline constexpr std::string_view kLoadLora = "rkllm_load_lora";    // LoraParams
inline constexpr std::string_view kLoadPromptCache = "rkllm_load_prompt_cache";  // PathParams
inline constexpr std::string_view kReleasePromptCache = "rkllm_release_prompt_cache";
inline constexpr std::string_view kClearKvCache = "rkllm_clear_kv_cache";  // ClearParams
inline constexpr std::string_view kGetKvCacheSize = "rkllm_get_kv_cache_size";
inline constexpr std::string_view kSetChatTemplate = "rkllm_set_chat_template";    // TemplateParams
inline constexpr std::string_view kSetFunctionTools = "rkllm_set_function_tools";  // ToolParams
inline constexpr std::string_view kSetCrossAttnParams =
    "rkllm_set_cross_attn_params";  // CrossAttnParams
}  // namespace method

struct OpenParams {
  std::string library;
  std::string abi;  // its name; empty: it is found out
};
struct Opened {
  std::string abi;
  ModelParams defaults;
};
struct TestParams {
  std::string folder;  // of tokenizer.json
};
/// The tokens of an answer are chosen in the worker, which test_tokens has to have allowed.
struct ChoiceParams {
  std::string grammar;  // GBNF; empty: nothing constrains the answer
  SamplingParams sampling;
};
struct RunRequest {
  std::uint64_t number;  // of its records in the ring; each is higher than the one before
  RunInput input;
  RunParams params;
  std::optional<ChoiceParams> choice = {};  // absent: the runtime chooses
  /// The numbers of an EmbedData or MultiModalData, which has none itself: in Base64, four bytes
  /// for each, since they are many.
  std::string numbers = {};
};
/// The run is ended, or not begun. One that is over is no error.
struct AbortParams {
  std::uint64_t run;  // its number
};
struct LoraParams {
  std::string lora_adapter_path;
  std::string lora_adapter_name;
  float scale;
};
struct PathParams {
  std::string prompt_cache_path;
};
struct ClearParams {
  bool keep_system_prompt;
  std::vector<std::pair<std::int32_t, std::int32_t>> ranges;
};
struct TemplateParams {
  std::string system_prompt;
  std::string prompt_prefix;
  std::string prompt_postfix;
};
struct ToolParams {
  std::string system_prompt;
  std::string tools;
  std::string tool_response_str;
};
/// Arrays of four bytes for each number, in Base64. The last two have one for each token.
struct CrossAttnParams {
  std::string encoder_k_cache;
  std::string encoder_v_cache;
  std::string encoder_mask;
  std::string encoder_pos;
};

/// What a function of the runtime has returned; 0 is success.
struct Returned {
  std::int32_t returned;
  std::optional<std::vector<std::int32_t>> kv_cache_sizes = {};  // of rkllm_get_kv_cache_size
};

}  // namespace sluice::rkllm

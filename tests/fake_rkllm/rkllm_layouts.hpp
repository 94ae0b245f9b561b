#pragma once

// The C interface of librkllmrt as the stand-in has it, for the version that FAKE_RKLLM_ABI says:
// 110, 120, 121 or 130. It is written from the published facts and not from src/engine/rkllm/abi/,
// so that a mistake there is found.

#include <cstddef>
#include <cstdint>

// NOLINTBEGIN(readability-identifier-naming): the names are Rockchip's

extern "C" {

typedef void* LLMHandle;

enum LLMCallState : int {
  RKLLM_RUN_NORMAL = 0,
  RKLLM_RUN_WAITING = 1,
  RKLLM_RUN_FINISH = 2,
  RKLLM_RUN_ERROR = 3,
};
enum RKLLMInputType : int {
  RKLLM_INPUT_PROMPT = 0,
  RKLLM_INPUT_TOKEN = 1,
  RKLLM_INPUT_EMBED = 2,
  RKLLM_INPUT_MULTIMODAL = 3,
};
enum RKLLMInferMode : int {
  RKLLM_INFER_GENERATE = 0,
  RKLLM_INFER_GET_LAST_HIDDEN_LAYER = 1,
  RKLLM_INFER_GET_LOGITS = 2,
};

struct RKLLMExtendParam {
  int32_t base_domain_id;
#if FAKE_RKLLM_ABI == 110
  uint8_t reserved[112];
#else
  int8_t embed_flash;
  int8_t enabled_cpus_num;
  uint32_t enabled_cpus_mask;
#if FAKE_RKLLM_ABI == 120
  uint8_t reserved[106];
#else
  uint8_t n_batch;
  int8_t use_cross_attn;
  uint8_t reserved[104];
#endif
#endif
};

struct RKLLMParam {
  const char* model_path;
  int32_t max_context_len;
  int32_t max_new_tokens;
  int32_t top_k;
#if FAKE_RKLLM_ABI != 110
  int32_t n_keep;
#endif
  float top_p;
  float temperature;
  float repeat_penalty;
  float frequency_penalty;
  float presence_penalty;
  int32_t mirostat;
  float mirostat_tau;
  float mirostat_eta;
  bool skip_special_token;
#if FAKE_RKLLM_ABI == 130
  bool ignore_eos_token;
#endif
  bool is_async;
#if FAKE_RKLLM_ABI != 130
  const char* img_start;
  const char* img_end;
  const char* img_content;
#endif
  RKLLMExtendParam extend_param;
};

struct RKLLMLoraAdapter {
  const char* lora_adapter_path;
  const char* lora_adapter_name;
  float scale;
};
struct RKLLMEmbedInput {
  float* embed;
  size_t n_tokens;
};
struct RKLLMTokenInput {
  int32_t* input_ids;
  size_t n_tokens;
};
struct RKLLMMultiModelInput {
  char* prompt;
#if FAKE_RKLLM_ABI == 130
  struct {
    float* image_embed;
    size_t n_image_tokens;
    size_t n_image;
    const char* image_start;
    const char* image_end;
    const char* image_content;
    size_t image_width;
    size_t image_height;
  } image;
  struct {
    float* video_embed;
    size_t n_frame_tokens;
    size_t n_frame_per_video;
    size_t n_video;
    const char* video_start;
    const char* video_end;
    const char* video_content;
    size_t frame_width;
    size_t frame_height;
  } video;
#else
  float* image_embed;
  size_t n_image_tokens;
#if FAKE_RKLLM_ABI == 121
  size_t n_image;
  size_t image_width;
  size_t image_height;
#endif
#endif
};
struct RKLLMInput {
#if FAKE_RKLLM_ABI >= 121
  const char* role;
  bool enable_thinking;
#endif
  RKLLMInputType input_type;
  union {
    const char* prompt_input;
    RKLLMEmbedInput embed_input;
    RKLLMTokenInput token_input;
    RKLLMMultiModelInput multimodal_input;
  };
};

struct RKLLMLoraParam {
  const char* lora_adapter_name;
};
struct RKLLMPromptCacheParam {
  int save_prompt_cache;
  const char* prompt_cache_path;
};
struct RKLLMCrossAttnParam {
  float* encoder_k_cache;
  float* encoder_v_cache;
  float* encoder_mask;
  int32_t* encoder_pos;
  int num_tokens;
};
struct RKLLMSamplingParam {
  int32_t top_k;
  float top_p;
  float temperature;
  float repeat_penalty;
  float frequency_penalty;
  float presence_penalty;
  int32_t mirostat;
  float mirostat_tau;
  float mirostat_eta;
};
struct RKLLMInferParam {
  RKLLMInferMode mode;
  RKLLMLoraParam* lora_params;
  RKLLMPromptCacheParam* prompt_cache_params;
#if FAKE_RKLLM_ABI == 130
  RKLLMSamplingParam* sampling_params;
#endif
#if FAKE_RKLLM_ABI != 110
  int keep_history;
#endif
#if FAKE_RKLLM_ABI == 130
  int32_t max_new_tokens;
#endif
};

struct RKLLMResultLastHiddenLayer {
  const float* hidden_states;
  int embd_size;
  int num_tokens;
};
struct RKLLMResultLogits {
  const float* logits;
  int vocab_size;
  int num_tokens;
};
struct RKLLMPerfStat {
  float prefill_time_ms;
  int prefill_tokens;
  float generate_time_ms;
  int generate_tokens;
  float memory_usage_mb;
};
struct RKLLMResult {
  const char* text;
  int32_t token_id;
  RKLLMResultLastHiddenLayer last_hidden_layer;
#if FAKE_RKLLM_ABI != 110
  RKLLMResultLogits logits;
#endif
#if FAKE_RKLLM_ABI >= 121
  RKLLMPerfStat perf;
#endif
};

#if FAKE_RKLLM_ABI >= 121
typedef int (*LLMResultCallback)(RKLLMResult*, void*, LLMCallState);
#else
typedef void (*LLMResultCallback)(RKLLMResult*, void*, LLMCallState);
#endif
#if FAKE_RKLLM_ABI == 130
struct RKLLMCallback {
  LLMResultCallback result_callback;
  void* result_userdata;
  int (*tokenizer_callback)(void*, const char*, int32_t, int32_t*, int32_t);
  void* tokenizer_userdata;
  int (*embed_callback)(void*, int32_t*, uint64_t, void*, uint64_t);
  void* embed_userdata;
};
typedef RKLLMCallback* RKLLMInitCallback;
#else
typedef LLMResultCallback RKLLMInitCallback;
#endif

RKLLMParam rkllm_createDefaultParam();
int rkllm_init(LLMHandle* handle, RKLLMParam* param, RKLLMInitCallback callback);
int rkllm_load_lora(LLMHandle handle, RKLLMLoraAdapter* adapter);
int rkllm_load_prompt_cache(LLMHandle handle, const char* path);
int rkllm_release_prompt_cache(LLMHandle handle);
int rkllm_destroy(LLMHandle handle);
int rkllm_run(LLMHandle handle, RKLLMInput* input, RKLLMInferParam* params, void* userdata);
int rkllm_run_async(LLMHandle handle, RKLLMInput* input, RKLLMInferParam* params, void* userdata);
int rkllm_abort(LLMHandle handle);
int rkllm_is_running(LLMHandle handle);
#if FAKE_RKLLM_ABI == 120
int rkllm_clear_kv_cache(LLMHandle handle, int keep_system_prompt);
#elif FAKE_RKLLM_ABI >= 121
int rkllm_clear_kv_cache(LLMHandle handle, int keep_system_prompt, int* start_pos, int* end_pos);
#endif
#if FAKE_RKLLM_ABI >= 120
int rkllm_set_chat_template(LLMHandle handle, const char* system, const char* prefix,
                            const char* postfix);
#endif
#if FAKE_RKLLM_ABI >= 121
int rkllm_get_kv_cache_size(LLMHandle handle, int* sizes);
int rkllm_set_function_tools(LLMHandle handle, const char* system, const char* tools,
                             const char* tool_response);
int rkllm_set_cross_attn_params(LLMHandle handle, RKLLMCrossAttnParam* params);
#endif

}  // extern "C"

// NOLINTEND(readability-identifier-naming)

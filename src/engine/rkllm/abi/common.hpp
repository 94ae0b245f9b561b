#pragma once

// What is the same in all versions of Rockchip's librkllmrt (rkllm.h, releases 1.1.0 to 1.3.0).
// Layouts are those of 64-bit Linux: LP64, `bool` of one byte, enumerators of four.

#include <cstddef>
#include <cstdint>

namespace sluice::rkllm {

using Handle = void*;  // LLMHandle

/// LLMCallState: what the callback of a run is told.
enum class CallState : std::int32_t {
  normal = 0,
  waiting = 1,  // a character is not complete yet
  finish = 2,
  error = 3,
  get_last_hidden_layer = 4,  // 1.1.x only
};

/// RKLLMInputType.
enum class InputType : std::int32_t { prompt = 0, token = 1, embed = 2, multimodal = 3 };

/// RKLLMInferMode.
enum class InferMode : std::int32_t {
  generate = 0,
  get_last_hidden_layer = 1,
  get_logits = 2,  // since 1.2.0
};

/// What a callback returns, since 1.2.1.
enum class CallbackReturn : std::int32_t {
  go_on = 0,
  pause = 1,    // rkllm_run() returns; the next one goes on
  release = 2,  // since 1.3.0: the runtime may free what it has put out
};

struct LoraAdapter {
  const char* lora_adapter_path;
  const char* lora_adapter_name;
  float scale;
};
static_assert(sizeof(LoraAdapter) == 24 && offsetof(LoraAdapter, lora_adapter_name) == 8 &&
              offsetof(LoraAdapter, scale) == 16);

struct LoraParam {
  const char* lora_adapter_name;
};
static_assert(sizeof(LoraParam) == 8);

struct PromptCacheParam {
  std::int32_t save_prompt_cache;  // 0: no
  const char* prompt_cache_path;
};
static_assert(sizeof(PromptCacheParam) == 16 && offsetof(PromptCacheParam, prompt_cache_path) == 8);

struct EmbedInput {
  float* embed;
  std::size_t n_tokens;
};
static_assert(sizeof(EmbedInput) == 16 && offsetof(EmbedInput, n_tokens) == 8);

struct TokenInput {
  std::int32_t* input_ids;
  std::size_t n_tokens;
};
static_assert(sizeof(TokenInput) == 16 && offsetof(TokenInput, n_tokens) == 8);

struct ResultLastHiddenLayer {
  const float* hidden_states;  // valid within the callback
  std::int32_t embd_size;
  std::int32_t num_tokens;
};
static_assert(sizeof(ResultLastHiddenLayer) == 16 &&
              offsetof(ResultLastHiddenLayer, embd_size) == 8 &&
              offsetof(ResultLastHiddenLayer, num_tokens) == 12);

/// Since 1.2.0.
struct ResultLogits {
  const float* logits;  // valid within the callback
  std::int32_t vocab_size;
  std::int32_t num_tokens;
};
static_assert(sizeof(ResultLogits) == 16 && offsetof(ResultLogits, vocab_size) == 8 &&
              offsetof(ResultLogits, num_tokens) == 12);

/// Since 1.2.1.
struct PerfStat {
  float prefill_time_ms;
  std::int32_t prefill_tokens;
  float generate_time_ms;
  std::int32_t generate_tokens;
  float memory_usage_mb;
};
static_assert(sizeof(PerfStat) == 20 && offsetof(PerfStat, prefill_tokens) == 4 &&
              offsetof(PerfStat, generate_time_ms) == 8 &&
              offsetof(PerfStat, generate_tokens) == 12 &&
              offsetof(PerfStat, memory_usage_mb) == 16);

/// Since 1.2.1. The shapes of the caches: k is [layers][tokens][kv_heads][head_dim], v is
/// [layers][kv_heads][head_dim][tokens].
struct CrossAttnParam {
  float* encoder_k_cache;
  float* encoder_v_cache;
  float* encoder_mask;
  std::int32_t* encoder_pos;
  std::int32_t num_tokens;
};
static_assert(sizeof(CrossAttnParam) == 40 && offsetof(CrossAttnParam, encoder_v_cache) == 8 &&
              offsetof(CrossAttnParam, encoder_mask) == 16 &&
              offsetof(CrossAttnParam, encoder_pos) == 24 &&
              offsetof(CrossAttnParam, num_tokens) == 32);

}  // namespace sluice::rkllm

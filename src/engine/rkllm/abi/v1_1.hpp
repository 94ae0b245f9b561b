#pragma once

// The structs of librkllmrt 1.1.0 to 1.1.4 that differ between versions.

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/rkllm/abi/common.hpp"

namespace sluice::rkllm::v1_1 {

struct ExtendParam {
  std::int32_t base_domain_id;
  std::array<std::uint8_t, 112> reserved;
};
static_assert(sizeof(ExtendParam) == 116 && offsetof(ExtendParam, base_domain_id) == 0 &&
              offsetof(ExtendParam, reserved) == 4);

struct Param {
  const char* model_path;
  std::int32_t max_context_len;
  std::int32_t max_new_tokens;
  std::int32_t top_k;
  float top_p;
  float temperature;
  float repeat_penalty;
  float frequency_penalty;
  float presence_penalty;
  std::int32_t mirostat;
  float mirostat_tau;
  float mirostat_eta;
  bool skip_special_token;
  bool is_async;
  const char* img_start;
  const char* img_end;
  const char* img_content;
  ExtendParam extend_param;
};
static_assert(sizeof(Param) == 200 && offsetof(Param, model_path) == 0 &&
              offsetof(Param, max_context_len) == 8 && offsetof(Param, max_new_tokens) == 12 &&
              offsetof(Param, top_k) == 16 && offsetof(Param, top_p) == 20 &&
              offsetof(Param, temperature) == 24 && offsetof(Param, repeat_penalty) == 28 &&
              offsetof(Param, frequency_penalty) == 32 && offsetof(Param, presence_penalty) == 36 &&
              offsetof(Param, mirostat) == 40 && offsetof(Param, mirostat_tau) == 44 &&
              offsetof(Param, mirostat_eta) == 48 && offsetof(Param, skip_special_token) == 52 &&
              offsetof(Param, is_async) == 53 && offsetof(Param, img_start) == 56 &&
              offsetof(Param, img_end) == 64 && offsetof(Param, img_content) == 72 &&
              offsetof(Param, extend_param) == 80);

struct MultiModalInput {
  char* prompt;
  float* image_embed;
  std::size_t n_image_tokens;
};
static_assert(sizeof(MultiModalInput) == 24 && offsetof(MultiModalInput, prompt) == 0 &&
              offsetof(MultiModalInput, image_embed) == 8 &&
              offsetof(MultiModalInput, n_image_tokens) == 16);

union InputUnion {
  const char* prompt_input;
  EmbedInput embed_input;
  TokenInput token_input;
  MultiModalInput multimodal_input;
};

struct Input {
  InputType input_type;
  InputUnion input;
};
static_assert(sizeof(Input) == 32 && offsetof(Input, input_type) == 0 &&
              offsetof(Input, input) == 8);

struct InferParam {
  InferMode mode;
  LoraParam* lora_params;
  PromptCacheParam* prompt_cache_params;
};
static_assert(sizeof(InferParam) == 24 && offsetof(InferParam, mode) == 0 &&
              offsetof(InferParam, lora_params) == 8 &&
              offsetof(InferParam, prompt_cache_params) == 16);

struct Result {
  const char* text;
  std::int32_t token_id;
  ResultLastHiddenLayer last_hidden_layer;
};
static_assert(sizeof(Result) == 32 && offsetof(Result, text) == 0 &&
              offsetof(Result, token_id) == 8 && offsetof(Result, last_hidden_layer) == 16);

using ResultCallback = void (*)(Result* result, void* userdata, CallState state);

}  // namespace sluice::rkllm::v1_1

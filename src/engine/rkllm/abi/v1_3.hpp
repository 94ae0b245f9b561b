#pragma once

// The structs of librkllmrt 1.3.0 that differ between versions.

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/rkllm/abi/common.hpp"

namespace sluice::rkllm::v1_3 {

struct ExtendParam {
  std::int32_t base_domain_id;
  std::int8_t embed_flash;
  std::int8_t enabled_cpus_num;
  std::uint32_t enabled_cpus_mask;
  std::uint8_t n_batch;
  std::uint8_t use_cross_attn;
  std::array<std::uint8_t, 104> reserved;
};
static_assert(sizeof(ExtendParam) == 120 && offsetof(ExtendParam, base_domain_id) == 0 &&
              offsetof(ExtendParam, embed_flash) == 4 &&
              offsetof(ExtendParam, enabled_cpus_num) == 5 &&
              offsetof(ExtendParam, enabled_cpus_mask) == 8 &&
              offsetof(ExtendParam, n_batch) == 12 && offsetof(ExtendParam, use_cross_attn) == 13 &&
              offsetof(ExtendParam, reserved) == 14);

struct Param {
  const char* model_path;
  std::int32_t max_context_len;
  std::int32_t max_new_tokens;
  std::int32_t top_k;
  std::int32_t n_keep;
  float top_p;
  float temperature;
  float repeat_penalty;
  float frequency_penalty;
  float presence_penalty;
  std::int32_t mirostat;
  float mirostat_tau;
  float mirostat_eta;
  bool skip_special_token;
  bool ignore_eos_token;
  bool is_async;
  ExtendParam extend_param;
};
static_assert(sizeof(Param) == 184 && offsetof(Param, model_path) == 0 &&
              offsetof(Param, max_context_len) == 8 && offsetof(Param, max_new_tokens) == 12 &&
              offsetof(Param, top_k) == 16 && offsetof(Param, n_keep) == 20 &&
              offsetof(Param, top_p) == 24 && offsetof(Param, temperature) == 28 &&
              offsetof(Param, repeat_penalty) == 32 && offsetof(Param, frequency_penalty) == 36 &&
              offsetof(Param, presence_penalty) == 40 && offsetof(Param, mirostat) == 44 &&
              offsetof(Param, mirostat_tau) == 48 && offsetof(Param, mirostat_eta) == 52 &&
              offsetof(Param, skip_special_token) == 56 &&
              offsetof(Param, ignore_eos_token) == 57 && offsetof(Param, is_async) == 58 &&
              offsetof(Param, extend_param) == 60);

struct ImageInput {
  float* image_embed;
  std::size_t n_image_tokens;
  std::size_t n_image;
  const char* image_start;
  const char* image_end;
  const char* image_content;
  std::size_t image_width;
  std::size_t image_height;
};
static_assert(sizeof(ImageInput) == 64 && offsetof(ImageInput, image_embed) == 0 &&
              offsetof(ImageInput, n_image_tokens) == 8 && offsetof(ImageInput, n_image) == 16 &&
              offsetof(ImageInput, image_start) == 24 && offsetof(ImageInput, image_end) == 32 &&
              offsetof(ImageInput, image_content) == 40 &&
              offsetof(ImageInput, image_width) == 48 && offsetof(ImageInput, image_height) == 56);

struct VideoInput {
  float* video_embed;
  std::size_t n_frame_tokens;
  std::size_t n_frame_per_video;
  std::size_t n_video;
  const char* video_start;
  const char* video_end;
  const char* video_content;
  std::size_t frame_width;
  std::size_t frame_height;
};
static_assert(sizeof(VideoInput) == 72 && offsetof(VideoInput, video_embed) == 0 &&
              offsetof(VideoInput, n_frame_tokens) == 8 &&
              offsetof(VideoInput, n_frame_per_video) == 16 &&
              offsetof(VideoInput, n_video) == 24 && offsetof(VideoInput, video_start) == 32 &&
              offsetof(VideoInput, video_end) == 40 && offsetof(VideoInput, video_content) == 48 &&
              offsetof(VideoInput, frame_width) == 56 && offsetof(VideoInput, frame_height) == 64);

struct MultiModalInput {
  char* prompt;
  ImageInput image;
  VideoInput video;
};
static_assert(sizeof(MultiModalInput) == 144 && offsetof(MultiModalInput, prompt) == 0 &&
              offsetof(MultiModalInput, image) == 8 && offsetof(MultiModalInput, video) == 72);

union InputUnion {
  const char* prompt_input;
  EmbedInput embed_input;
  TokenInput token_input;
  MultiModalInput multimodal_input;
};

struct Input {
  const char* role;  // "user" or "tool"
  bool enable_thinking;
  InputType input_type;
  InputUnion input;
};
static_assert(sizeof(Input) == 160 && offsetof(Input, role) == 0 &&
              offsetof(Input, enable_thinking) == 8 && offsetof(Input, input_type) == 12 &&
              offsetof(Input, input) == 16);

struct SamplingParam {
  std::int32_t top_k;
  float top_p;
  float temperature;
  float repeat_penalty;
  float frequency_penalty;
  float presence_penalty;
  std::int32_t mirostat;
  float mirostat_tau;
  float mirostat_eta;
};
static_assert(sizeof(SamplingParam) == 36 && offsetof(SamplingParam, top_k) == 0 &&
              offsetof(SamplingParam, top_p) == 4 && offsetof(SamplingParam, temperature) == 8 &&
              offsetof(SamplingParam, repeat_penalty) == 12 &&
              offsetof(SamplingParam, frequency_penalty) == 16 &&
              offsetof(SamplingParam, presence_penalty) == 20 &&
              offsetof(SamplingParam, mirostat) == 24 &&
              offsetof(SamplingParam, mirostat_tau) == 28 &&
              offsetof(SamplingParam, mirostat_eta) == 32);

struct InferParam {
  InferMode mode;
  LoraParam* lora_params;
  PromptCacheParam* prompt_cache_params;
  SamplingParam* sampling_params;
  std::int32_t keep_history;
  std::int32_t max_new_tokens;  // 0 or less: that of Param
};
static_assert(sizeof(InferParam) == 40 && offsetof(InferParam, mode) == 0 &&
              offsetof(InferParam, lora_params) == 8 &&
              offsetof(InferParam, prompt_cache_params) == 16 &&
              offsetof(InferParam, sampling_params) == 24 &&
              offsetof(InferParam, keep_history) == 32 &&
              offsetof(InferParam, max_new_tokens) == 36);

struct Result {
  const char* text;
  std::int32_t token_id;
  ResultLastHiddenLayer last_hidden_layer;
  ResultLogits logits;
  PerfStat perf;
};
static_assert(sizeof(Result) == 72 && offsetof(Result, text) == 0 &&
              offsetof(Result, token_id) == 8 && offsetof(Result, last_hidden_layer) == 16 &&
              offsetof(Result, logits) == 32 && offsetof(Result, perf) == 48);

using ResultCallback = CallbackReturn (*)(Result* result, void* userdata, CallState state);
using TokenizerCallback = int (*)(void* userdata, const char* text, std::int32_t length,
                                  std::int32_t* tokens, std::int32_t most);
using EmbedCallback = int (*)(void* userdata, std::int32_t* tokens, std::uint64_t count,
                              void* embed, std::uint64_t length);

struct Callback {
  ResultCallback result_callback;
  void* result_userdata;
  TokenizerCallback tokenizer_callback;
  void* tokenizer_userdata;
  EmbedCallback embed_callback;
  void* embed_userdata;
};
static_assert(sizeof(Callback) == 48 && offsetof(Callback, result_callback) == 0 &&
              offsetof(Callback, result_userdata) == 8 &&
              offsetof(Callback, tokenizer_callback) == 16 &&
              offsetof(Callback, tokenizer_userdata) == 24 &&
              offsetof(Callback, embed_callback) == 32 && offsetof(Callback, embed_userdata) == 40);

}  // namespace sluice::rkllm::v1_3

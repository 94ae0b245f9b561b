// The layouts of the stand-in against the table of sizes and offsets that was measured with the
// published headers. Compiled once for each ABI, and nothing else.

#include <cstddef>

#include "rkllm_layouts.hpp"

#if FAKE_RKLLM_ABI == 110
static_assert(sizeof(RKLLMExtendParam) == 116);
static_assert(offsetof(RKLLMExtendParam, base_domain_id) == 0);
static_assert(offsetof(RKLLMExtendParam, reserved) == 4);
static_assert(sizeof(RKLLMParam) == 200);
static_assert(offsetof(RKLLMParam, model_path) == 0);
static_assert(offsetof(RKLLMParam, max_context_len) == 8);
static_assert(offsetof(RKLLMParam, max_new_tokens) == 12);
static_assert(offsetof(RKLLMParam, top_k) == 16);
static_assert(offsetof(RKLLMParam, top_p) == 20);
static_assert(offsetof(RKLLMParam, temperature) == 24);
static_assert(offsetof(RKLLMParam, repeat_penalty) == 28);
static_assert(offsetof(RKLLMParam, frequency_penalty) == 32);
static_assert(offsetof(RKLLMParam, presence_penalty) == 36);
static_assert(offsetof(RKLLMParam, mirostat) == 40);
static_assert(offsetof(RKLLMParam, mirostat_tau) == 44);
static_assert(offsetof(RKLLMParam, mirostat_eta) == 48);
static_assert(offsetof(RKLLMParam, skip_special_token) == 52);
static_assert(offsetof(RKLLMParam, is_async) == 53);
static_assert(offsetof(RKLLMParam, img_start) == 56);
static_assert(offsetof(RKLLMParam, img_content) == 72);
static_assert(offsetof(RKLLMParam, extend_param) == 80);
static_assert(sizeof(RKLLMInput) == 32);
static_assert(offsetof(RKLLMInput, input_type) == 0);
static_assert(offsetof(RKLLMInput, prompt_input) == 8);
static_assert(sizeof(RKLLMMultiModelInput) == 24);
static_assert(offsetof(RKLLMMultiModelInput, image_embed) == 8);
static_assert(offsetof(RKLLMMultiModelInput, n_image_tokens) == 16);
static_assert(sizeof(RKLLMInferParam) == 24);
static_assert(offsetof(RKLLMInferParam, mode) == 0);
static_assert(offsetof(RKLLMInferParam, lora_params) == 8);
static_assert(offsetof(RKLLMInferParam, prompt_cache_params) == 16);
static_assert(sizeof(RKLLMResult) == 32);
static_assert(offsetof(RKLLMResult, text) == 0);
static_assert(offsetof(RKLLMResult, token_id) == 8);
static_assert(offsetof(RKLLMResult, last_hidden_layer) == 16);
#endif

#if FAKE_RKLLM_ABI == 120 || FAKE_RKLLM_ABI == 121
static_assert(sizeof(RKLLMParam) == 208);
static_assert(offsetof(RKLLMParam, model_path) == 0);
static_assert(offsetof(RKLLMParam, max_context_len) == 8);
static_assert(offsetof(RKLLMParam, max_new_tokens) == 12);
static_assert(offsetof(RKLLMParam, top_k) == 16);
static_assert(offsetof(RKLLMParam, n_keep) == 20);
static_assert(offsetof(RKLLMParam, top_p) == 24);
static_assert(offsetof(RKLLMParam, temperature) == 28);
static_assert(offsetof(RKLLMParam, repeat_penalty) == 32);
static_assert(offsetof(RKLLMParam, frequency_penalty) == 36);
static_assert(offsetof(RKLLMParam, presence_penalty) == 40);
static_assert(offsetof(RKLLMParam, mirostat) == 44);
static_assert(offsetof(RKLLMParam, mirostat_tau) == 48);
static_assert(offsetof(RKLLMParam, mirostat_eta) == 52);
static_assert(offsetof(RKLLMParam, skip_special_token) == 56);
static_assert(offsetof(RKLLMParam, is_async) == 57);
static_assert(offsetof(RKLLMParam, img_start) == 64);
static_assert(offsetof(RKLLMParam, img_end) == 72);
static_assert(offsetof(RKLLMParam, img_content) == 80);
static_assert(offsetof(RKLLMParam, extend_param) == 88);
static_assert(sizeof(RKLLMInferParam) == 32);
static_assert(offsetof(RKLLMInferParam, mode) == 0);
static_assert(offsetof(RKLLMInferParam, lora_params) == 8);
static_assert(offsetof(RKLLMInferParam, prompt_cache_params) == 16);
static_assert(offsetof(RKLLMInferParam, keep_history) == 24);
#endif

#if FAKE_RKLLM_ABI == 120
static_assert(sizeof(RKLLMExtendParam) == 120);
static_assert(offsetof(RKLLMExtendParam, embed_flash) == 4);
static_assert(offsetof(RKLLMExtendParam, enabled_cpus_num) == 5);
static_assert(offsetof(RKLLMExtendParam, enabled_cpus_mask) == 8);
static_assert(offsetof(RKLLMExtendParam, reserved) == 12);
static_assert(sizeof(RKLLMInput) == 32);
static_assert(offsetof(RKLLMInput, input_type) == 0);
static_assert(offsetof(RKLLMInput, prompt_input) == 8);
static_assert(sizeof(RKLLMMultiModelInput) == 24);
static_assert(offsetof(RKLLMMultiModelInput, image_embed) == 8);
static_assert(offsetof(RKLLMMultiModelInput, n_image_tokens) == 16);
static_assert(sizeof(RKLLMResult) == 48);
static_assert(offsetof(RKLLMResult, token_id) == 8);
static_assert(offsetof(RKLLMResult, last_hidden_layer) == 16);
static_assert(offsetof(RKLLMResult, logits) == 32);
#endif

#if FAKE_RKLLM_ABI >= 121
static_assert(sizeof(RKLLMExtendParam) == 120);
static_assert(offsetof(RKLLMExtendParam, base_domain_id) == 0);
static_assert(offsetof(RKLLMExtendParam, embed_flash) == 4);
static_assert(offsetof(RKLLMExtendParam, enabled_cpus_num) == 5);
static_assert(offsetof(RKLLMExtendParam, enabled_cpus_mask) == 8);
static_assert(offsetof(RKLLMExtendParam, n_batch) == 12);
static_assert(offsetof(RKLLMExtendParam, use_cross_attn) == 13);
static_assert(offsetof(RKLLMExtendParam, reserved) == 14);
static_assert(sizeof(RKLLMResult) == 72);
static_assert(offsetof(RKLLMResult, text) == 0);
static_assert(offsetof(RKLLMResult, token_id) == 8);
static_assert(offsetof(RKLLMResult, last_hidden_layer) == 16);
static_assert(offsetof(RKLLMResult, logits) == 32);
static_assert(offsetof(RKLLMResult, perf) == 48);
static_assert(sizeof(RKLLMCrossAttnParam) == 40);
static_assert(offsetof(RKLLMCrossAttnParam, encoder_v_cache) == 8);
static_assert(offsetof(RKLLMCrossAttnParam, encoder_mask) == 16);
static_assert(offsetof(RKLLMCrossAttnParam, encoder_pos) == 24);
static_assert(offsetof(RKLLMCrossAttnParam, num_tokens) == 32);
static_assert(sizeof(RKLLMPerfStat) == 20);
static_assert(offsetof(RKLLMPerfStat, prefill_time_ms) == 0);
static_assert(offsetof(RKLLMPerfStat, prefill_tokens) == 4);
static_assert(offsetof(RKLLMPerfStat, generate_time_ms) == 8);
static_assert(offsetof(RKLLMPerfStat, generate_tokens) == 12);
static_assert(offsetof(RKLLMPerfStat, memory_usage_mb) == 16);
#endif

#if FAKE_RKLLM_ABI == 121
static_assert(sizeof(RKLLMInput) == 64);
static_assert(offsetof(RKLLMInput, role) == 0);
static_assert(offsetof(RKLLMInput, enable_thinking) == 8);
static_assert(offsetof(RKLLMInput, input_type) == 12);
static_assert(offsetof(RKLLMInput, prompt_input) == 16);
static_assert(sizeof(RKLLMMultiModelInput) == 48);
static_assert(offsetof(RKLLMMultiModelInput, image_embed) == 8);
static_assert(offsetof(RKLLMMultiModelInput, n_image_tokens) == 16);
static_assert(offsetof(RKLLMMultiModelInput, n_image) == 24);
static_assert(offsetof(RKLLMMultiModelInput, image_width) == 32);
static_assert(offsetof(RKLLMMultiModelInput, image_height) == 40);
#endif

#if FAKE_RKLLM_ABI == 130
static_assert(sizeof(RKLLMParam) == 184);
static_assert(offsetof(RKLLMParam, model_path) == 0);
static_assert(offsetof(RKLLMParam, max_context_len) == 8);
static_assert(offsetof(RKLLMParam, max_new_tokens) == 12);
static_assert(offsetof(RKLLMParam, top_k) == 16);
static_assert(offsetof(RKLLMParam, n_keep) == 20);
static_assert(offsetof(RKLLMParam, top_p) == 24);
static_assert(offsetof(RKLLMParam, temperature) == 28);
static_assert(offsetof(RKLLMParam, repeat_penalty) == 32);
static_assert(offsetof(RKLLMParam, frequency_penalty) == 36);
static_assert(offsetof(RKLLMParam, presence_penalty) == 40);
static_assert(offsetof(RKLLMParam, mirostat) == 44);
static_assert(offsetof(RKLLMParam, mirostat_tau) == 48);
static_assert(offsetof(RKLLMParam, mirostat_eta) == 52);
static_assert(offsetof(RKLLMParam, skip_special_token) == 56);
static_assert(offsetof(RKLLMParam, ignore_eos_token) == 57);
static_assert(offsetof(RKLLMParam, is_async) == 58);
static_assert(offsetof(RKLLMParam, extend_param) == 60);
static_assert(sizeof(RKLLMInput) == 160);
static_assert(offsetof(RKLLMInput, role) == 0);
static_assert(offsetof(RKLLMInput, enable_thinking) == 8);
static_assert(offsetof(RKLLMInput, input_type) == 12);
static_assert(offsetof(RKLLMInput, prompt_input) == 16);
static_assert(sizeof(RKLLMMultiModelInput) == 144);
static_assert(offsetof(RKLLMMultiModelInput, prompt) == 0);
static_assert(offsetof(RKLLMMultiModelInput, image) == 8);
static_assert(offsetof(RKLLMMultiModelInput, image.image_start) == 32);
static_assert(offsetof(RKLLMMultiModelInput, image.image_height) == 64);
static_assert(offsetof(RKLLMMultiModelInput, video) == 72);
static_assert(offsetof(RKLLMMultiModelInput, video.n_video) == 96);
static_assert(offsetof(RKLLMMultiModelInput, video.frame_height) == 136);
static_assert(sizeof(RKLLMSamplingParam) == 36);
static_assert(offsetof(RKLLMSamplingParam, top_k) == 0);
static_assert(offsetof(RKLLMSamplingParam, top_p) == 4);
static_assert(offsetof(RKLLMSamplingParam, temperature) == 8);
static_assert(offsetof(RKLLMSamplingParam, repeat_penalty) == 12);
static_assert(offsetof(RKLLMSamplingParam, frequency_penalty) == 16);
static_assert(offsetof(RKLLMSamplingParam, presence_penalty) == 20);
static_assert(offsetof(RKLLMSamplingParam, mirostat) == 24);
static_assert(offsetof(RKLLMSamplingParam, mirostat_tau) == 28);
static_assert(offsetof(RKLLMSamplingParam, mirostat_eta) == 32);
static_assert(sizeof(RKLLMInferParam) == 40);
static_assert(offsetof(RKLLMInferParam, mode) == 0);
static_assert(offsetof(RKLLMInferParam, lora_params) == 8);
static_assert(offsetof(RKLLMInferParam, prompt_cache_params) == 16);
static_assert(offsetof(RKLLMInferParam, sampling_params) == 24);
static_assert(offsetof(RKLLMInferParam, keep_history) == 32);
static_assert(offsetof(RKLLMInferParam, max_new_tokens) == 36);
static_assert(sizeof(RKLLMCallback) == 48);
static_assert(offsetof(RKLLMCallback, result_callback) == 0);
static_assert(offsetof(RKLLMCallback, result_userdata) == 8);
static_assert(offsetof(RKLLMCallback, tokenizer_callback) == 16);
static_assert(offsetof(RKLLMCallback, tokenizer_userdata) == 24);
static_assert(offsetof(RKLLMCallback, embed_callback) == 32);
static_assert(offsetof(RKLLMCallback, embed_userdata) == 40);
#endif

static_assert(sizeof(RKLLMLoraAdapter) == 24);
static_assert(offsetof(RKLLMLoraAdapter, lora_adapter_name) == 8);
static_assert(offsetof(RKLLMLoraAdapter, scale) == 16);
static_assert(sizeof(RKLLMEmbedInput) == 16);
static_assert(offsetof(RKLLMEmbedInput, n_tokens) == 8);
static_assert(sizeof(RKLLMTokenInput) == 16);
static_assert(offsetof(RKLLMTokenInput, n_tokens) == 8);
static_assert(sizeof(RKLLMPromptCacheParam) == 16);
static_assert(offsetof(RKLLMPromptCacheParam, prompt_cache_path) == 8);
static_assert(sizeof(RKLLMResultLastHiddenLayer) == 16);
static_assert(offsetof(RKLLMResultLastHiddenLayer, embd_size) == 8);
static_assert(offsetof(RKLLMResultLastHiddenLayer, num_tokens) == 12);
static_assert(sizeof(RKLLMResultLogits) == 16);
static_assert(offsetof(RKLLMResultLogits, vocab_size) == 8);
static_assert(offsetof(RKLLMResultLogits, num_tokens) == 12);

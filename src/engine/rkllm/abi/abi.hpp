#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sluice::rkllm {

/// The binary interfaces of librkllmrt that are known. A program for one crashes with another.
enum class Abi : std::uint8_t { v1_1, v1_2_0, v1_2_1, v1_3_0 };

/// What a runtime of an ABI has.
struct AbiFacts {
  Abi abi;
  std::string_view name;             // of --rkllm-abi, such as "1.2.1"
  std::string_view versions;         // those that have it, for people
  std::size_t param_bytes;           // of its RKLLMParam
  bool has_history = false;          // a run says whether it goes on with the one before
  bool has_logits = false;           // RKLLM_INFER_GET_LOGITS
  bool has_chat_template = false;    // rkllm_set_chat_template() and rkllm_clear_kv_cache()
  bool has_pause = false;            // its callback says whether to go on
  bool has_thinking = false;         // RKLLMInput has `role` and `enable_thinking`
  bool has_function_tools = false;   // rkllm_set_function_tools(), and cross attention
  bool has_figures = false;          // results have RKLLMPerfStat
  bool has_image_sizes = false;      // images have a number, a width and a height
  bool has_image_tags = false;       // a run says the tags of its images, not RKLLMParam
  bool has_sampling_of_run = false;  // a run has its own sampling and max_new_tokens
};

/// All of them, oldest first.
std::span<const AbiFacts> all_abis();
const AbiFacts& facts_of(Abi abi);
/// By its name; null: there is none.
const AbiFacts* find_abi(std::string_view name);
/// Of the runtime of this version, such as "1.2.3"; null: it is not supported. Nothing is guessed:
/// a version that is not known may have another ABI.
const AbiFacts* abi_of_version(std::string_view version);

}  // namespace sluice::rkllm

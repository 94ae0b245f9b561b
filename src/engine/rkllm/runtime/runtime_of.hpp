#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <dlfcn.h>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "engine/rkllm/abi/v1_1.hpp"
#include "engine/rkllm/abi/v1_2_0.hpp"
#include "engine/rkllm/abi/v1_2_1.hpp"
#include "engine/rkllm/abi/v1_3.hpp"
#include "engine/rkllm/runtime/padded_floats.hpp"
#include "engine/rkllm/runtime/runtime.hpp"

namespace sluice::rkllm {

// The types of a version, for RuntimeOf.

namespace v1_1 {
struct Types {
  using Param = v1_1::Param;
  using Input = v1_1::Input;
  using InferParam = v1_1::InferParam;
  using Result = v1_1::Result;
  using ResultCallback = v1_1::ResultCallback;
  using InitCallback = ResultCallback;  // the third parameter of rkllm_init()
  static constexpr Abi kAbi = Abi::v1_1;
};
}  // namespace v1_1

namespace v1_2_0 {
struct Types {
  using Param = v1_2_0::Param;
  using Input = v1_2_0::Input;
  using InferParam = v1_2_0::InferParam;
  using Result = v1_2_0::Result;
  using ResultCallback = v1_2_0::ResultCallback;
  using InitCallback = ResultCallback;
  using ClearKvCache = int (*)(Handle, int keep_system_prompt);
  static constexpr Abi kAbi = Abi::v1_2_0;
};
}  // namespace v1_2_0

namespace v1_2_1 {
struct Types {
  using Param = v1_2_1::Param;
  using Input = v1_2_1::Input;
  using InferParam = v1_2_1::InferParam;
  using Result = v1_2_1::Result;
  using ResultCallback = v1_2_1::ResultCallback;
  using InitCallback = ResultCallback;
  using ClearKvCache = int (*)(Handle, int keep_system_prompt, int* starts, int* ends);
  static constexpr Abi kAbi = Abi::v1_2_1;
};
}  // namespace v1_2_1

namespace v1_3 {
struct Types {
  using Param = v1_3::Param;
  using Input = v1_3::Input;
  using InferParam = v1_3::InferParam;
  using Result = v1_3::Result;
  using ResultCallback = v1_3::ResultCallback;
  using InitCallback = v1_3::Callback*;
  using ClearKvCache = int (*)(Handle, int keep_system_prompt, int* starts, int* ends);
  static constexpr Abi kAbi = Abi::v1_3_0;
};
}  // namespace v1_3

/// A runtime of the version that `V` has the types of. A member that only some versions have is set
/// where the struct has it.
template <class V>
class RuntimeOf final : public Runtime {
  static constexpr bool kReturns = !std::is_void_v<
      std::invoke_result_t<typename V::ResultCallback, typename V::Result*, void*, CallState>>;
  static constexpr bool kHasTemplates = requires { typename V::ClearKvCache; };
  static constexpr bool kHasFunctionTools = kReturns;

 public:
  /// `library`: of dlopen(). Error 422: it lacks a function.
  static Result<std::unique_ptr<Runtime>> find(void* library, const std::string& path) {
    auto runtime = std::make_unique<RuntimeOf>();
    std::string missing;
    const auto bind = [&](auto& function, const char* name) {
      void* const symbol = ::dlsym(library, name);
      if (symbol == nullptr) missing.append(missing.empty() ? "" : ", ").append(name);
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
    };
    bind(runtime->create_default_param_, "rkllm_createDefaultParam");
    bind(runtime->init_, "rkllm_init");
    bind(runtime->destroy_, "rkllm_destroy");
    bind(runtime->run_, "rkllm_run");
    bind(runtime->abort_, "rkllm_abort");
    bind(runtime->is_running_, "rkllm_is_running");
    bind(runtime->load_lora_, "rkllm_load_lora");
    bind(runtime->load_prompt_cache_, "rkllm_load_prompt_cache");
    bind(runtime->release_prompt_cache_, "rkllm_release_prompt_cache");
    if constexpr (kHasTemplates) {
      bind(runtime->clear_kv_cache_, "rkllm_clear_kv_cache");
      bind(runtime->set_chat_template_, "rkllm_set_chat_template");
    }
    if constexpr (kHasFunctionTools) {
      bind(runtime->get_kv_cache_size_, "rkllm_get_kv_cache_size");
      bind(runtime->set_function_tools_, "rkllm_set_function_tools");
      bind(runtime->set_cross_attn_params_, "rkllm_set_cross_attn_params");
    }
    if (!missing.empty()) {
      return fail(422, path + " lacks " + missing + ", which version " +
                           std::string(runtime->abi().name) + " has");
    }
    return runtime;
  }

  RuntimeOf() = default;
  ~RuntimeOf() override { destroy(); }

  [[nodiscard]] const AbiFacts& abi() const override { return facts_of(V::kAbi); }

  [[nodiscard]] ModelParams default_params() const override {
    const typename V::Param param = create_default_param_();
    ModelParams out;
    out.max_context_len = param.max_context_len;
    out.max_new_tokens = param.max_new_tokens;
    out.sampling = {.top_k = param.top_k,
                    .top_p = param.top_p,
                    .temperature = param.temperature,
                    .repeat_penalty = param.repeat_penalty,
                    .frequency_penalty = param.frequency_penalty,
                    .presence_penalty = param.presence_penalty,
                    .mirostat = param.mirostat,
                    .mirostat_tau = param.mirostat_tau,
                    .mirostat_eta = param.mirostat_eta};
    out.skip_special_token = param.skip_special_token;
    if constexpr (requires { param.n_keep; }) out.n_keep = param.n_keep;
    if constexpr (requires { param.ignore_eos_token; }) {
      out.ignore_eos_token = param.ignore_eos_token;
    }
    if constexpr (requires { param.img_start; }) {
      const auto text = [](const char* given) {
        return std::string(given == nullptr ? "" : given);
      };
      out.img_start = text(param.img_start);
      out.img_end = text(param.img_end);
      out.img_content = text(param.img_content);
    }
    const auto& extended = param.extend_param;
    out.base_domain_id = extended.base_domain_id;
    if constexpr (requires { extended.embed_flash; }) {
      out.embed_flash = extended.embed_flash != 0;
      out.enabled_cpus_num = extended.enabled_cpus_num;
      out.enabled_cpus_mask = extended.enabled_cpus_mask;
    }
    if constexpr (requires { extended.n_batch; }) {
      out.n_batch = extended.n_batch;
      out.use_cross_attn = extended.use_cross_attn != 0;
    }
    return out;
  }

  int init(const ModelParams& params) override {
    texts_ = params;
    typename V::Param param = create_default_param_();
    fill(param);
    Handle handle = nullptr;
    int result = 0;
    if constexpr (std::same_as<typename V::InitCallback, typename V::ResultCallback>) {
      result = init_(&handle, &param, on_result);
    } else {
      std::remove_pointer_t<typename V::InitCallback> callback{};
      callback.result_callback = on_result;
      callback.result_userdata = this;
      result = init_(&handle, &param, &callback);
    }
    if (result != 0) return result;
    if (handle == nullptr) return kNoHandle;
    handle_ = handle;
    return 0;
  }

  int destroy() override {
    return handle_ == nullptr ? 0 : destroy_(std::exchange(handle_, nullptr));
  }

  int run(const RunInput& given, const RunParams& params, Listener listener) override {
    typename V::Input input{};
    // The runtime is not to change them, but its structs do not say so.
    RunInput own = given;
    PaddedFloats floats;
    fill(input, own, floats);
    typename V::InferParam infer{};
    infer.mode = params.mode;
    LoraParam lora{.lora_adapter_name = params.lora_adapter_name.c_str()};
    if (!params.lora_adapter_name.empty()) infer.lora_params = &lora;
    PromptCacheParam cache{.save_prompt_cache = params.save_prompt_cache ? 1 : 0,
                           .prompt_cache_path = params.prompt_cache_path.c_str()};
    if (!params.prompt_cache_path.empty()) infer.prompt_cache_params = &cache;
    if constexpr (requires { infer.keep_history; })
      infer.keep_history = params.keep_history ? 1 : 0;
    if constexpr (requires { infer.sampling_params; }) {
      auto sampling = sampling_of<std::remove_pointer_t<decltype(infer.sampling_params)>>(params);
      infer.sampling_params = &sampling;
      infer.max_new_tokens = params.max_new_tokens.value_or(0);
      return run_with(std::move(listener), input, infer);
    } else {
      return run_with(std::move(listener), input, infer);
    }
  }

  int abort() override { return abort_(handle_); }
  int is_running() override { return is_running_(handle_); }
  int load_lora(const std::string& path, const std::string& name, float scale) override {
    LoraAdapter adapter{
        .lora_adapter_path = path.c_str(), .lora_adapter_name = name.c_str(), .scale = scale};
    return load_lora_(handle_, &adapter);
  }
  int load_prompt_cache(const std::string& path) override {
    return load_prompt_cache_(handle_, path.c_str());
  }
  int release_prompt_cache() override { return release_prompt_cache_(handle_); }

  std::optional<int> clear_kv_cache(
      bool keep_system_prompt,
      std::span<const std::pair<std::int32_t, std::int32_t>> ranges) override {
    if constexpr (!kHasTemplates) {
      return std::nullopt;
    } else if constexpr (!kHasFunctionTools) {
      return clear_kv_cache_(handle_, keep_system_prompt ? 1 : 0);
    } else {
      std::vector<int> starts;
      std::vector<int> ends;
      for (const auto& [first, last] : ranges) {
        starts.push_back(first);
        ends.push_back(last);
      }
      return clear_kv_cache_(handle_, keep_system_prompt ? 1 : 0,
                             starts.empty() ? nullptr : starts.data(),
                             ends.empty() ? nullptr : ends.data());
    }
  }

  std::optional<int> get_kv_cache_size(std::vector<std::int32_t>& sizes) override {
    if constexpr (!kHasFunctionTools) {
      return std::nullopt;
    } else {
      sizes.assign(batch_, 0);
      return get_kv_cache_size_(handle_, sizes.data());
    }
  }

  std::optional<int> set_chat_template(const std::string& system, const std::string& prefix,
                                       const std::string& postfix) override {
    if constexpr (!kHasTemplates) return std::nullopt;
    return set_chat_template_(handle_, system.c_str(), prefix.c_str(), postfix.c_str());
  }

  std::optional<int> set_function_tools(const std::string& system, const std::string& tools,
                                        const std::string& tool_response) override {
    if constexpr (!kHasFunctionTools) return std::nullopt;
    return set_function_tools_(handle_, system.c_str(), tools.c_str(), tool_response.c_str());
  }

  std::optional<int> set_cross_attn_params(CrossAttnParam params) override {
    if constexpr (!kHasFunctionTools) return std::nullopt;
    return set_cross_attn_params_(handle_, &params);
  }

 private:
  template <bool kHas, class Types>
  struct ClearOf {
    using Type = void*;
  };
  template <class Types>
  struct ClearOf<true, Types> {
    using Type = typename Types::ClearKvCache;
  };

  /// Sets `to` if there is a value.
  template <class Member, class Value>
  static void set(Member& to, const std::optional<Value>& value) {
    if (value) to = static_cast<Member>(*value);
  }
  template <class Params>
  static void set_sampling(Params& to, const Sampling& sampling) {
    set(to.top_k, sampling.top_k);
    set(to.top_p, sampling.top_p);
    set(to.temperature, sampling.temperature);
    set(to.repeat_penalty, sampling.repeat_penalty);
    set(to.frequency_penalty, sampling.frequency_penalty);
    set(to.presence_penalty, sampling.presence_penalty);
    set(to.mirostat, sampling.mirostat);
    set(to.mirostat_tau, sampling.mirostat_tau);
    set(to.mirostat_eta, sampling.mirostat_eta);
  }

  /// Texts of texts_ are pointed to, which lives as long as the model.
  void fill(typename V::Param& param) {
    param.model_path = texts_.model_path.c_str();
    param.is_async = false;
    set(param.max_context_len, texts_.max_context_len);
    set(param.max_new_tokens, texts_.max_new_tokens);
    set_sampling(param, texts_.sampling);
    set(param.skip_special_token, texts_.skip_special_token);
    if constexpr (requires { param.n_keep; }) set(param.n_keep, texts_.n_keep);
    if constexpr (requires { param.ignore_eos_token; }) {
      set(param.ignore_eos_token, texts_.ignore_eos_token);
    }
    if constexpr (requires { param.img_start; }) {
      const auto point = [](const char*& to, const std::string& text) {
        if (!text.empty()) to = text.c_str();
      };
      point(param.img_start, texts_.img_start);
      point(param.img_end, texts_.img_end);
      point(param.img_content, texts_.img_content);
    }
    auto& extended = param.extend_param;
    set(extended.base_domain_id, texts_.base_domain_id);
    if constexpr (requires { extended.embed_flash; }) {
      set(extended.embed_flash, texts_.embed_flash);
      set(extended.enabled_cpus_num, texts_.enabled_cpus_num);
      set(extended.enabled_cpus_mask, texts_.enabled_cpus_mask);
    }
    if constexpr (requires { extended.n_batch; }) {
      set(extended.n_batch, texts_.n_batch);
      set(extended.use_cross_attn, texts_.use_cross_attn);
      batch_ = std::max<std::size_t>(1, extended.n_batch);
    }
    default_sampling_ = {.top_k = param.top_k,
                         .top_p = param.top_p,
                         .temperature = param.temperature,
                         .repeat_penalty = param.repeat_penalty,
                         .frequency_penalty = param.frequency_penalty,
                         .presence_penalty = param.presence_penalty,
                         .mirostat = param.mirostat,
                         .mirostat_tau = param.mirostat_tau,
                         .mirostat_eta = param.mirostat_eta};
  }

  /// `own` and `floats` outlive the input, which points into them.
  static void fill(typename V::Input& input, RunInput& own, PaddedFloats& floats) {
    if constexpr (requires { input.role; }) {
      input.role = own.role.c_str();
      input.enable_thinking = own.enable_thinking;
    }
    input.input_type = static_cast<InputType>(own.input.index());
    auto& to = input.input;
    if (auto* const text = std::get_if<std::string>(&own.input)) {
      to.prompt_input = text->c_str();
    } else if (auto* const tokens = std::get_if<TokenIds>(&own.input)) {
      to.token_input = {.input_ids = tokens->data(), .n_tokens = tokens->size()};
    } else if (auto* const embed = std::get_if<EmbedData>(&own.input)) {
      floats.assign(embed->embed, embed->n_tokens);
      to.embed_input = {.embed = floats.data(), .n_tokens = embed->n_tokens};
    } else {
      auto& images = std::get<MultiModalData>(own.input);
      floats.assign(images.image_embed, images.n_image * images.n_image_tokens);
      fill(to.multimodal_input, images, floats.data());
    }
  }
  template <class MultiModal>
  static void fill(MultiModal& to, MultiModalData& from, float* floats) {
    to = {};
    to.prompt = from.prompt.data();
    if constexpr (requires { to.image; }) {
      const auto tag = [](const std::string& text) {
        return text.empty() ? nullptr : text.c_str();
      };
      to.image.image_embed = floats;
      to.image.n_image_tokens = from.n_image_tokens;
      to.image.n_image = from.n_image;
      to.image.image_start = tag(from.image_start);
      to.image.image_end = tag(from.image_end);
      to.image.image_content = tag(from.image_content);
      to.image.image_width = from.image_width;
      to.image.image_height = from.image_height;
    } else {
      to.image_embed = floats;
      to.n_image_tokens = from.n_image_tokens;
      if constexpr (requires { to.n_image; }) {
        to.n_image = from.n_image;
        to.image_width = from.image_width;
        to.image_height = from.image_height;
      }
    }
  }

  template <class SamplingParam>
  SamplingParam sampling_of(const RunParams& params) const {
    SamplingParam out{};
    set_sampling(out, default_sampling_);
    set_sampling(out, params.sampling);
    return out;
  }

  int run_with(Listener listener, typename V::Input& input, typename V::InferParam& infer) {
    listener_ = std::move(listener);
    const int result = run_(handle_, &input, &infer, this);
    listener_ = nullptr;
    return result;
  }

  CallbackReturn tell(const typename V::Result* result, CallState state) const {
    Output out{.state = state};
    if (result != nullptr) {
      if (result->text != nullptr) out.text = result->text;
      out.token_id = result->token_id;
      const auto count = [](std::int32_t rows, std::int32_t columns) {
        return rows > 0 && columns > 0
                   ? static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns)
                   : std::size_t{0};
      };
      const ResultLastHiddenLayer& hidden = result->last_hidden_layer;
      if (hidden.hidden_states != nullptr) {
        out.hidden_states = {hidden.hidden_states, count(hidden.num_tokens, hidden.embd_size)};
        out.embd_size = hidden.embd_size;
      }
      if constexpr (requires { result->logits; }) {
        const ResultLogits& logits = result->logits;
        if (logits.logits != nullptr) {
          out.logits = {logits.logits, count(logits.num_tokens, logits.vocab_size)};
          out.vocab_size = logits.vocab_size;
        }
      }
      if constexpr (requires { result->perf; }) out.perf = result->perf;
    }
    return listener_ ? listener_(out) : CallbackReturn::go_on;
  }

  static auto on_result(typename V::Result* result, void* userdata, CallState state) {
    const auto* const self = static_cast<const RuntimeOf*>(userdata);
    // Some releases call back within rkllm_init(), with nothing.
    const CallbackReturn answer =
        self == nullptr ? CallbackReturn::go_on : self->tell(result, state);
    if constexpr (kReturns) return answer;
  }

  typename V::Param (*create_default_param_)() = nullptr;
  int (*init_)(Handle*, typename V::Param*, typename V::InitCallback) = nullptr;
  int (*destroy_)(Handle) = nullptr;
  int (*run_)(Handle, typename V::Input*, typename V::InferParam*, void* userdata) = nullptr;
  int (*abort_)(Handle) = nullptr;
  int (*is_running_)(Handle) = nullptr;
  int (*load_lora_)(Handle, LoraAdapter*) = nullptr;
  int (*load_prompt_cache_)(Handle, const char* path) = nullptr;
  int (*release_prompt_cache_)(Handle) = nullptr;
  // Those that the version lacks are not looked for.
  typename ClearOf<kHasTemplates, V>::Type clear_kv_cache_ = nullptr;
  int (*set_chat_template_)(Handle, const char*, const char*, const char*) = nullptr;
  int (*get_kv_cache_size_)(Handle, int* sizes) = nullptr;
  int (*set_function_tools_)(Handle, const char*, const char*, const char*) = nullptr;
  int (*set_cross_attn_params_)(Handle, CrossAttnParam*) = nullptr;

  Handle handle_ = nullptr;
  ModelParams texts_;
  Sampling default_sampling_;
  std::size_t batch_ = 1;
  Listener listener_;
};

}  // namespace sluice::rkllm

#include "engine/methods/run_call.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "engine/generation_params.hpp"
#include "engine/methods/input_call.hpp"
#include "protocol/parameters.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

/// A member of a generation's parameters that a session may have a value for.
struct Setting {
  std::string_view name;
  void (*copy)(const RunSettings& from, RunSettings& to);
};

template <auto Member>
void copy_sampling(const RunSettings& from, RunSettings& to) {
  to.sampling.*Member = from.sampling.*Member;
}

constexpr std::array<Setting, 10> kSettings = {
    {{"temperature", copy_sampling<&SamplingParams::temperature>},
     {"top_k", copy_sampling<&SamplingParams::top_k>},
     {"top_p", copy_sampling<&SamplingParams::top_p>},
     {"min_p", copy_sampling<&SamplingParams::min_p>},
     {"repeat_penalty", copy_sampling<&SamplingParams::repeat_penalty>},
     {"frequency_penalty", copy_sampling<&SamplingParams::frequency_penalty>},
     {"presence_penalty", copy_sampling<&SamplingParams::presence_penalty>},
     {"penalty_last_n", copy_sampling<&SamplingParams::penalty_last_n>},
     {"seed", copy_sampling<&SamplingParams::seed>},
     {"max_tokens",
      [](const RunSettings& from, RunSettings& to) { to.max_tokens = from.max_tokens; }}}};

std::unexpected<Error> bad_member(std::string_view name, std::string_view expected) {
  return fail(kInvalidParams,
              "Invalid params: " + std::string(name) + " must be " + std::string(expected));
}

/// The members of a struct among `params`, or null if it is absent.
Result<const json::object*> struct_at(const json::object& params, std::string_view name) {
  const json::value* const value = find_parameter(params, name);
  if (value == nullptr) return nullptr;
  if (!value->is_object()) return bad_member(name, "an object");
  return &value->get_object();
}

/// The first of two objects that is among `params`, or null.
Result<const json::object*> struct_at(const json::object& params, std::string_view name,
                                      std::string_view other) {
  Result<const json::object*> found = struct_at(params, name);
  return !found || *found != nullptr ? found : struct_at(params, other);
}

/// A bool as C has it: true, false, or an integer.
Result<bool> flag_at(const json::object& from, std::string_view name) {
  const json::value* const value = find_parameter(from, name);
  if (value == nullptr) return false;
  if (value->is_bool()) return value->get_bool();
  if (const std::optional<std::int64_t> number = integer_of(*value)) return *number != 0;
  return bad_member(name, "0 or 1");
}

/// Settings that `from` names, of a generation that it was decoded into.
RunSettings settings_of(const json::object& from, const GenerationRequest& decoded) {
  RunSettings out{.sampling = decoded.sampling, .max_tokens = decoded.max_tokens, .named = 0};
  for (std::size_t i = 0; i < kSettings.size(); ++i) {
    if (find_parameter(from, kSettings[i].name) != nullptr) out.named |= std::uint32_t{1} << i;
  }
  return out;
}

/// The member `max_new_tokens` of `from`: 0 and less stand for nothing.
Result<RunSettings> limit_of(const json::object& from) {
  RunSettings out;
  const json::value* const value = find_parameter(from, "max_new_tokens");
  if (value == nullptr) return out;
  const std::optional<std::int64_t> tokens = integer_of(*value);
  constexpr std::int64_t kMost = 1'000'000'000;
  if (!tokens || *tokens > kMost)
    return bad_member("max_new_tokens", "an integer up to 1000000000");
  if (*tokens < 1) return out;
  json::object limit;
  limit["max_tokens"] = *tokens;
  GenerationRequest limited;
  limited.max_tokens = static_cast<int>(*tokens);
  return settings_of(limit, limited);
}

/// Settings in an object of the C interface.
Result<RunSettings> read_settings(const json::object& from) {
  json::object wanted;  // without texts, which may be long
  for (const Setting& each : kSettings) {
    if (const json::value* const value = find_parameter(from, each.name))
      wanted[each.name] = *value;
  }
  const Result<GenerationRequest> decoded = decode_generation(wanted);
  if (!decoded) return std::unexpected(decoded.error());
  RunSettings out = settings_of(wanted, *decoded);
  const Result<RunSettings> limit = limit_of(from);
  if (!limit) return limit;
  out.fill(*limit);
  return out;
}

/// What is said: `prompt_input` of `from`, by `role`.
Result<void> read_prompt(const json::object& from, std::string_view role,
                         GenerationRequest& request) {
  Result<std::string> prompt = text_parameter(from, "prompt_input");
  if (!prompt) return std::unexpected(std::move(prompt.error()));
  if (prompt->empty()) return {};
  if (!request.prompt.empty() || !request.messages.empty()) {
    return fail(kInvalidParams,
                "Invalid params: give one of prompt_input, prompt and messages, not several");
  }
  if (role == "tool") {
    request.messages.push_back({.role = "tool", .content = *std::move(prompt)});
  } else {
    request.prompt = *std::move(prompt);
  }
  return {};
}

/// RKLLMInput.
Result<void> read_input(const json::object& input, GenerationRequest& request) {
  Result<std::shared_ptr<const ModelInput>> given = decode_model_input(input);
  if (!given) return std::unexpected(std::move(given.error()));
  request.input = *std::move(given);
  const Result<std::string> role = text_parameter(input, "role");
  if (!role) return std::unexpected(role.error());
  if (!role->empty() && *role != "user" && *role != "tool") {
    return bad_member("role", R"("user" or "tool")");
  }
  if (request.input != nullptr && *role == "tool") {
    return bad_member("role", R"("user" with this input_type)");
  }
  return read_prompt(input, *role, request);
}

/// What of a run's behaviour may also stand beside `prompt`.
Result<void> read_keeping(const json::object& from, RunCall& call) {
  const Result<bool> keeps = flag_at(from, "keep_history");
  if (!keeps) return std::unexpected(keeps.error());
  call.keep_history = call.keep_history || *keeps;
  const Result<RunSettings> limit = limit_of(from);
  if (!limit) return std::unexpected(limit.error());
  call.settings.fill(*limit);
  return {};
}

/// RKLLMLoraParam.
Result<void> read_adapter(const json::object& infer, GenerationRequest& request) {
  const Result<const json::object*> lora = struct_at(infer, "lora_params");
  if (!lora) return std::unexpected(lora.error());
  if (*lora == nullptr) return {};
  Result<std::string> name = text_parameter(**lora, "lora_adapter_name");
  if (!name) return std::unexpected(std::move(name.error()));
  request.lora_adapter = *std::move(name);
  return {};
}

/// RKLLMPromptCacheParam.
Result<void> read_prompt_cache(const json::object& infer, RunCall& call) {
  const Result<const json::object*> cache = struct_at(infer, "prompt_cache_params");
  if (!cache) return std::unexpected(cache.error());
  if (*cache == nullptr) return {};
  Result<std::string> path = text_parameter(**cache, "prompt_cache_path");
  if (!path) return std::unexpected(std::move(path.error()));
  const Result<bool> saves = flag_at(**cache, "save_prompt_cache");
  if (!saves) return std::unexpected(saves.error());
  if (path->empty() == *saves) {
    return fail(kInvalidParams,
                "Invalid params: prompt_cache_params say where to save the prompt, so give both "
                "prompt_cache_path and save_prompt_cache; load_prompt_cache loads it");
  }
  call.prompt_cache = *std::move(path);
  return {};
}

/// RKLLMInferParam.
Result<void> read_infer_params(const json::object& infer, RunCall& call) {
  const Result<Yield> mode = decode_mode(infer);
  if (!mode) return std::unexpected(mode.error());
  call.request.yields = *mode;
  if (Result<void> read = read_adapter(infer, call.request); !read) return read;
  if (Result<void> read = read_prompt_cache(infer, call); !read) return read;
  const Result<const json::object*> sampling = struct_at(infer, "sampling_params");
  if (!sampling) return std::unexpected(sampling.error());
  if (*sampling != nullptr) {
    const Result<RunSettings> settings = read_settings(**sampling);
    if (!settings) return std::unexpected(settings.error());
    call.settings.fill(*settings);
  }
  return read_keeping(infer, call);
}

/// What a run is given besides a prompt, or yields besides text, stands alone.
Result<void> check_alone(const RunCall& call) {
  const GenerationRequest& request = call.request;
  const bool has_input = request.input != nullptr;
  if (has_input && !(request.prompt.empty() && request.messages.empty())) {
    return fail(kInvalidParams,
                "Invalid params: a prompt goes with input_type RKLLM_INPUT_PROMPT alone; leave "
                "prompt, prompt_input and messages out, or input_type");
  }
  if (call.keep_history && (has_input || request.yields != Yield::text)) {
    return fail(kInvalidParams,
                "Invalid params: keep_history goes with RKLLM_INPUT_PROMPT and "
                "RKLLM_INFER_GENERATE alone; other runs stand alone");
  }
  return {};
}

}  // namespace

void RunSettings::fill(const RunSettings& other) {
  for (std::size_t i = 0; i < kSettings.size(); ++i) {
    const std::uint32_t bit = std::uint32_t{1} << i;
    if ((named & bit) != 0 || (other.named & bit) == 0) continue;
    kSettings[i].copy(other, *this);
    named |= bit;
  }
}

Result<RunCall> decode_run_call(const json::object& params) {
  RunCall call;
  Result<GenerationRequest> request = decode_generation(params);
  if (!request) return std::unexpected(std::move(request.error()));
  call.settings = settings_of(params, *request);
  call.request = *std::move(request);
  const auto read_all = [&]() -> Result<void> {
    const Result<const json::object*> input = struct_at(params, "input", "rkllm_input");
    if (!input) return std::unexpected(input.error());
    if (*input != nullptr) {
      if (Result<void> read = read_input(**input, call.request); !read) return read;
    }
    if (Result<void> read = read_prompt(params, {}, call.request); !read) return read;
    if (Result<void> read = read_keeping(params, call); !read) return read;
    const Result<const json::object*> infer =
        struct_at(params, "infer_params", "rkllm_infer_params");
    if (!infer) return std::unexpected(infer.error());
    if (*infer != nullptr) {
      if (Result<void> read = read_infer_params(**infer, call); !read) return read;
    }
    return check_alone(call);
  };
  if (Result<void> read = read_all(); !read) return std::unexpected(std::move(read.error()));
  return call;
}

void apply(const RunSettings& settings, GenerationRequest& request) {
  request.sampling = settings.sampling;
  request.max_tokens = settings.max_tokens;
}

Result<InitCall> decode_init_call(const json::object& params) {
  InitCall call;
  const Result<const json::object*> given = struct_at(params, "param", "rkllm_param");
  if (!given) return std::unexpected(given.error());
  const json::object& param = *given == nullptr ? params : **given;
  Result<std::string> path = text_parameter(param, "model_path");
  if (!path) return std::unexpected(std::move(path.error()));
  call.model_path = *std::move(path);
  if (const json::value* const length = find_parameter(param, "max_context_len")) {
    const std::optional<std::int64_t> tokens = integer_of(*length);
    if (!tokens) return bad_member("max_context_len", "an integer");
    call.max_context_len = *tokens;
  }
  Result<RunSettings> settings = read_settings(param);
  if (!settings) return std::unexpected(std::move(settings.error()));
  call.settings = *std::move(settings);
  constexpr std::array<std::string_view, 11> kFixed = {
      "n_keep",    "mirostat", "mirostat_tau", "mirostat_eta",     "skip_special_token", "is_async",
      "img_start", "img_end",  "img_content",  "ignore_eos_token", "extend_param"};
  for (const std::string_view name : kFixed) {
    if (find_parameter(param, name) != nullptr) call.ignored.emplace_back(name);
  }
  return call;
}

}  // namespace sluice

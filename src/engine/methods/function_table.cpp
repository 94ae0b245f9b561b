#include "engine/methods/function_table.hpp"

#include <array>

#include "engine/generation_params.hpp"
#include "json/json.hpp"

namespace sluice {
namespace {

constexpr std::string_view kPrefix = "rkllm_";

#define SLUICE_HANDLE                            \
  R"("handle_id":{"type":["string","integer"],)" \
  R"("description":"The session, from init"})"

constexpr std::array<FunctionSpec, 13> kFunctions = {{
    {.name = "init",
     .c_name = {},
     .description = "Begins a session with the model, and sets what its runs use unless they say "
                    "otherwise. The members are those of RKLLMParam",
     .properties = R"("model_path":{"type":["string","null"]},)"
                   R"("max_context_len":{"type":"integer"},"max_new_tokens":{"type":"integer"},)"
                   R"("top_k":{"type":"integer"},"top_p":{"type":"number"},)"
                   R"("temperature":{"type":"number"},"repeat_penalty":{"type":"number"},)"
                   R"("frequency_penalty":{"type":"number"},"presence_penalty":{"type":"number"})"},
    {.name = "destroy",
     .c_name = {},
     .description = "Ends the session and forgets what was set and said in it",
     .properties = SLUICE_HANDLE},
    {.name = "create_default_param",
     .c_name = "rkllm_createDefaultParam",
     .description = "Returns the parameters that init has by default",
     .properties = ""},
    {.name = "load_lora",
     .c_name = {},
     .description = "For operators: loads a LoRA adapter, which runs then name in lora_params. The "
                    "path is relative to the server's folder of models",
     .properties = R"("lora_adapter_path":{"type":"string"},"lora_adapter_name":{"type":"string"},)"
                   R"("scale":{"type":"number"})"},
    {.name = "load_prompt_cache",
     .c_name = {},
     .description = "For operators: loads a prompt cache for all prompts that begin like it. The "
                    "path is relative to the server's folder of models",
     .properties = R"("prompt_cache_path":{"type":"string"})"},
    {.name = "release_prompt_cache",
     .c_name = {},
     .description = "For operators: lets go of the prompt cache",
     .properties = ""},
    {.name = "clear_kv_cache",
     .c_name = {},
     .description = "Forgets what was said in the session's runs with keep_history",
     .properties = R"("keep_system_prompt":{"type":["integer","boolean"]},)" SLUICE_HANDLE},
    {.name = "get_kv_cache_size",
     .c_name = {},
     .description = "Returns how many tokens the conversation of the session has",
     .properties = SLUICE_HANDLE},
    {.name = "set_chat_template",
     .c_name = {},
     .description = "Puts these texts around what is said, in place of the model's own template",
     .properties = R"("system_prompt":{"type":"string"},"prompt_prefix":{"type":"string"},)"
                   R"("prompt_postfix":{"type":"string"},)" SLUICE_HANDLE},
    {.name = "set_function_tools",
     .c_name = {},
     .description = "Offers the model tools in the runs of the session",
     .properties = R"("system_prompt":{"type":"string"},"tools":{"type":["string","array"]},)"
                   R"("tool_response_str":{"type":"string"},)" SLUICE_HANDLE},
    {.name = "set_cross_attn_params",
     .c_name = {},
     .description =
         "For operators: sets what a decoder attends to. Each array has numbers, or is the "
         "Base64 of them, little-endian",
     .properties = R"("encoder_k_cache":{"type":["array","string"]},)"
                   R"("encoder_v_cache":{"type":["array","string"]},)"
                   R"("encoder_mask":{"type":["array","string"]},)"
                   R"("encoder_pos":{"type":["array","string"]},"num_tokens":{"type":"integer"})"},
    {.name = "get_functions",
     .c_name = {},
     .description = "Lists these functions",
     .properties = ""},
    {.name = "get_constants",
     .c_name = {},
     .description = "Returns the constants of rkllm.h",
     .properties = ""},
}};

#undef SLUICE_HANDLE

/// JSON text: the parameters of a run that are structs of the C interface.
constexpr std::string_view kRunStructs =
    R"("input":{"type":["object","null"],"description":"RKLLMInput; numbers are an array, or the )"
    R"(Base64 of their bytes, little-endian and four for each","properties":{)"
    R"("role":{"enum":["user","tool",""]},"input_type":{"enum":[0,1,2,3,"RKLLM_INPUT_PROMPT",)"
    R"("RKLLM_INPUT_TOKEN","RKLLM_INPUT_EMBED","RKLLM_INPUT_MULTIMODAL"]},)"
    R"("prompt_input":{"type":"string"},"token_input":{"type":"object","properties":{)"
    R"("input_ids":{"type":["array","string"]},"n_tokens":{"type":"integer"}}},)"
    R"("embed_input":{"type":"object","properties":{"embed":{"type":["array","string"]},)"
    R"("n_tokens":{"type":"integer"}}},"multimodal_input":{"type":"object","properties":{)"
    R"("prompt":{"type":"string"},"image_embed":{"type":["array","string"]},)"
    R"("n_image_tokens":{"type":"integer"},"n_image":{"type":"integer"},)"
    R"("image_width":{"type":"integer"},"image_height":{"type":"integer"},)"
    R"("image":{"type":"object","description":"Or these members here, as since 1.3.0"}}}}},)"
    R"("infer_params":{"type":["object","null"],"description":"RKLLMInferParam","properties":{)"
    R"("mode":{"enum":[0,1,2,"RKLLM_INFER_GENERATE","RKLLM_INFER_GET_LAST_HIDDEN_LAYER",)"
    R"("RKLLM_INFER_GET_LOGITS"]},"lora_params":{"type":"object"},)"
    R"("prompt_cache_params":{"type":"object"},"sampling_params":{"type":"object"},)"
    R"("keep_history":{"type":["integer","boolean"]},"max_new_tokens":{"type":"integer"}}})";

}  // namespace

std::string FunctionSpec::full_name() const {
  return c_name.empty() ? std::string(kPrefix).append(name) : std::string(c_name);
}

std::span<const FunctionSpec> function_specs() {
  return kFunctions;
}

std::vector<std::string> spellings_of(const FunctionSpec& function) {
  std::vector<std::string> out = {std::string(function.name)};
  std::vector<std::string> full = {std::string(kPrefix).append(function.name)};
  if (!function.c_name.empty()) full.push_back(function.full_name());
  for (std::string& each : full) {
    std::string dotted = each;
    dotted[kPrefix.size() - 1] = '.';
    out.push_back(std::move(each));
    out.push_back(std::move(dotted));
  }
  return out;
}

std::string run_schema() {
  std::string out = generation_schema();
  constexpr std::string_view kBefore = R"("properties":{)";
  out.insert(out.find(kBefore) + kBefore.size(), std::string(kRunStructs) + ",");
  return out;
}

std::string constants_json() {
  // rkllm.h 1.3.0; the values are the same in every version that has the name.
  return R"({"LLMCallState":{"RKLLM_RUN_NORMAL":0,"RKLLM_RUN_WAITING":1,"RKLLM_RUN_FINISH":2,)"
         R"("RKLLM_RUN_ERROR":3},)"
         R"("RKLLMInputType":{"RKLLM_INPUT_PROMPT":0,"RKLLM_INPUT_TOKEN":1,"RKLLM_INPUT_EMBED":2,)"
         R"("RKLLM_INPUT_MULTIMODAL":3},)"
         R"("RKLLMInferMode":{"RKLLM_INFER_GENERATE":0,"RKLLM_INFER_GET_LAST_HIDDEN_LAYER":1,)"
         R"("RKLLM_INFER_GET_LOGITS":2},)"
         R"("CPU":{"CPU0":1,"CPU1":2,"CPU2":4,"CPU3":8,"CPU4":16,"CPU5":32,"CPU6":64,"CPU7":128}})";
}

std::string functions_json(const std::function<bool(std::string_view name)>& has) {
  std::string out = R"({"functions":[)";
  const auto add = [&out](std::string_view name, std::string_view description,
                          std::string_view properties, bool is_there) {
    if (out.back() != '[') out.push_back(',');
    out.append(R"({"name":")").append(name).append(R"(","description":)");
    append_json_string(out, description);
    out.append(R"(,"parameters":{"type":"object","properties":{)").append(properties).append("}}");
    out.append(is_there ? R"(,"available":true})" : R"(,"available":false})");
  };
  constexpr std::string_view kStream = R"("stream_id":{"type":"string"})";
  const std::string run = std::string(kStream).append(",").append(kRunStructs);
  add("rkllm_run", "Answers a prompt, whole or as a stream; reads the stream (docs/streaming.md)",
      run, true);
  add("rkllm_run_async", "Answers a prompt as a stream", run, true);
  add("rkllm_is_running", "Tells whether a run is under way", kStream, true);
  add("rkllm_abort", "Stops a run", kStream, true);
  for (const FunctionSpec& each : kFunctions) {
    add(each.full_name(), each.description, each.properties, has(each.name));
  }
  out.append("]}");
  return out;
}

}  // namespace sluice

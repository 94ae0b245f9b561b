#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "engine/engine.hpp"
#include "json/json.hpp"

namespace sluice {

/// What a run uses unless it says otherwise: settings that were named, by bits of Setting.
struct RunSettings {
  SamplingParams sampling;
  std::optional<int> max_tokens;
  std::uint32_t named = 0;

  /// Takes from `other` what is not named here.
  void fill(const RunSettings& other);
};

/// Parameters of a `run` in either form: that of docs/streaming.md, or the members of RKLLMInput in
/// `input` and those of RKLLMInferParam in `infer_params`. Of these, prompt_input, keep_history and
/// max_new_tokens may stand outside.
struct RunCall {
  GenerationRequest request;  // without what `settings` has
  RunSettings settings;
  bool keep_history = false;      // it goes on from what was said in the session, and is kept there
  std::string prompt_cache = {};  // where its prompt is to be saved, as the caller has it; or empty
};

/// Errors: -32602 for what decode_generation() refuses, for a member of the wrong type, and for one
/// that asks for what is not there.
Result<RunCall> decode_run_call(const json::object& params);

/// Puts the settings of a run into its request.
void apply(const RunSettings& settings, GenerationRequest& request);

/// Parameters of `init`: the members of RKLLMParam, in `param` or not.
struct InitCall {
  std::string model_path;  // empty: not named
  std::int64_t max_context_len = 0;
  RunSettings settings;
  std::vector<std::string> ignored;  // members that have no effect here
};
Result<InitCall> decode_init_call(const json::object& params);

}  // namespace sluice

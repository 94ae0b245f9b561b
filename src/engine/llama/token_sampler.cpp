#include "engine/llama/token_sampler.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/random.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

std::uint32_t random_seed() {
  std::uint32_t seed = 0;
  random_bytes(std::as_writable_bytes(std::span(&seed, 1)));
  return seed;
}

Result<void> in_range(float value, float low, float high, std::string_view name,
                      std::string_view range) {
  if (std::isfinite(value) && value >= low && value <= high) return {};
  return fail(kInvalidParams, std::string(name) + " must be from " + std::string(range));
}

}  // namespace

Result<void> check_sampling(const SamplingParams& params) {
  for (const Result<void>& checked :
       {in_range(params.temperature.value_or(0), 0, 100, "temperature", "0 to 100"),
        in_range(params.top_p, 0, 1, "top_p", "0 to 1"),
        in_range(params.min_p, 0, 1, "min_p", "0 to 1"),
        in_range(params.repeat_penalty, 0.01F, 100, "repeat_penalty", "0.01 to 100"),
        in_range(params.frequency_penalty, -100, 100, "frequency_penalty", "-100 to 100"),
        in_range(params.presence_penalty, -100, 100, "presence_penalty", "-100 to 100")}) {
    if (!checked) return checked;
  }
  if (params.top_k < 0) return fail(kInvalidParams, "top_k must be at least 0");
  if (params.penalty_last_n < 0 || params.penalty_last_n > 65536) {
    return fail(kInvalidParams, "penalty_last_n must be from 0 to 65536");
  }
  return {};
}

TokenSampler::TokenSampler(const llama_model* model, const SamplingParams& params,
                           common_params_sampling grammar, std::span<const llama_token> prompt) {
  common_params_sampling& all = grammar;
  if (params.temperature) all.temp = *params.temperature;
  all.top_k = params.top_k;
  all.top_p = params.top_p;
  all.min_p = params.min_p;
  all.penalty_repeat = params.repeat_penalty;
  all.penalty_freq = params.frequency_penalty;
  all.penalty_present = params.presence_penalty;
  all.penalty_last_n = params.penalty_last_n;
  all.seed = params.seed ? *params.seed : random_seed();
  // llama.cpp takes this one as the wish for a random seed.
  if (all.seed == LLAMA_DEFAULT_SEED) all.seed = LLAMA_DEFAULT_SEED - 1;
  all.no_perf = true;
  all.samplers = {COMMON_SAMPLER_TYPE_PENALTIES, COMMON_SAMPLER_TYPE_TOP_K,
                  COMMON_SAMPLER_TYPE_TOP_P, COMMON_SAMPLER_TYPE_MIN_P,
                  COMMON_SAMPLER_TYPE_TEMPERATURE};
  sampler_.reset(common_sampler_init(model, all));
  const auto window = std::min(prompt.size(), static_cast<std::size_t>(params.penalty_last_n));
  for (const llama_token token : prompt.last(window)) {
    common_sampler_accept(sampler_.get(), token, false);
  }
}

llama_token TokenSampler::sample(llama_context* context, int index) {
  const llama_token token = common_sampler_sample(sampler_.get(), context, index);
  common_sampler_accept(sampler_.get(), token, true);
  return token;
}

}  // namespace sluice

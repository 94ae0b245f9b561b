#include "engine/llama/sampling/token_sampler.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "core/crypto/random.hpp"
#include "engine/chat/request_limits.hpp"

namespace sluice {
namespace {

constexpr float kDefaultTemperature = 0.8F;  // llama.cpp's default

std::uint32_t random_seed() {
  std::uint32_t seed = 0;
  random_bytes(std::as_writable_bytes(std::span(&seed, 1)));
  return seed;
}

}  // namespace

TokenSampler::TokenSampler(const llama_vocab* vocab, const SamplingParams& params,
                           std::unique_ptr<TokenConstraint> constraint,
                           std::span<const llama_token> prompt, std::uint32_t context_tokens)
    : constraint_(std::move(constraint)),
      words_(static_cast<std::size_t>(llama_vocab_n_tokens(vocab))) {
  auto chain_params = llama_sampler_chain_default_params();
  chain_params.no_perf = true;
  chain_.reset(llama_sampler_chain_init(chain_params));
  const auto add = [this](llama_sampler* sampler) {
    llama_sampler_chain_add(chain_.get(), sampler);
  };
  std::int32_t suppressed_count = 0;
  const llama_token* const suppressed = llama_vocab_get_suppress_tokens(vocab, &suppressed_count);
  if (suppressed_count > 0) {
    std::vector<llama_logit_bias> biases;
    for (std::int32_t i = 0; i < suppressed_count; ++i) {
      biases.push_back({.token = suppressed[i], .bias = -std::numeric_limits<float>::infinity()});
    }
    add(llama_sampler_init_logit_bias(static_cast<std::int32_t>(words_), suppressed_count,
                                      biases.data()));
  }
  const std::size_t window = std::min<std::size_t>(
      params.penalty_last_n < 0 ? context_tokens : static_cast<std::size_t>(params.penalty_last_n),
      RequestLimits::kPenaltyWindow);
  add(llama_sampler_init_penalties(static_cast<std::int32_t>(words_),
                                   static_cast<std::int32_t>(window), params.repeat_penalty,
                                   params.frequency_penalty, params.presence_penalty));
  add(llama_sampler_init_top_k(params.top_k));
  add(llama_sampler_init_top_p(params.top_p, 0));
  add(llama_sampler_init_min_p(params.min_p, 0));
  add(llama_sampler_init_temp(params.temperature.value_or(kDefaultTemperature)));
  const std::uint32_t seed = params.seed ? *params.seed : random_seed();
  // llama.cpp interprets this value as a request for a random seed.
  add(llama_sampler_init_dist(seed == LLAMA_DEFAULT_SEED ? LLAMA_DEFAULT_SEED - 1 : seed));
  for (const llama_token token : prompt.last(std::min(prompt.size(), window))) {
    llama_sampler_accept(chain_.get(), token);
  }
}

Result<llama_token> TokenSampler::sample(llama_context* context, int index) {
  const float* const logits = llama_get_logits_ith(context, index);
  candidates_.resize(words_);
  for (std::size_t i = 0; i < words_; ++i) {
    candidates_[i] = {.id = static_cast<llama_token>(i), .logit = logits[i], .p = 0};
  }
  llama_token token = choose();
  if (constraint_ != nullptr) {
    const auto chosen = constraint_->choose(token, [&](std::span<const TokenId> allowed) {
      candidates_.clear();
      for (const llama_token word : allowed) {
        candidates_.push_back({.id = word, .logit = logits[word], .p = 0});
      }
      return choose();
    });
    if (!chosen) return std::unexpected(chosen.error());
    token = *chosen;
  }
  llama_sampler_accept(chain_.get(), token);
  return token;
}

llama_token TokenSampler::choose() {
  llama_token_data_array array{
      .data = candidates_.data(), .size = candidates_.size(), .selected = -1, .sorted = false};
  llama_sampler_apply(chain_.get(), &array);
  if (array.selected < 0) throw std::runtime_error("no token was chosen");
  return array.data[array.selected].id;
}

}  // namespace sluice

#include "engine/grammar/token_choice.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <unordered_map>
#include <utility>

#include "core/crypto/random.hpp"
#include "engine/chat/request_limits.hpp"

namespace sluice {
namespace {

constexpr float kUsualTemperature = 0.8F;

std::uint32_t drawn_seed() {
  std::uint32_t seed = 0;
  random_bytes(std::as_writable_bytes(std::span(&seed, 1)));
  return seed;
}

}  // namespace

TokenChoice::TokenChoice(std::shared_ptr<const TokenPieces> pieces, const SamplingParams& params,
                         std::unique_ptr<TokenConstraint> constraint)
    : pieces_(std::move(pieces)),
      params_(params),
      constraint_(std::move(constraint)),
      window_(params.penalty_last_n < 0
                  ? RequestLimits::kPenaltyWindow
                  : std::min(RequestLimits::kPenaltyWindow,
                             static_cast<std::size_t>(params.penalty_last_n))),
      random_(params.seed ? *params.seed : drawn_seed()) {}

bool TokenChoice::is_over() const {
  return constraint_ != nullptr && constraint_->is_over();
}

Result<TokenId> TokenChoice::next(std::span<const float> logits) {
  logits_.assign(logits.begin(), logits.end());
  penalize();
  const auto add = [this](TokenId token) {
    candidates_.push_back({.token = token, .logit = logits_[static_cast<std::size_t>(token)]});
  };
  candidates_.clear();
  for (const TokenPieces::Piece& each : pieces_->sorted()) add(each.token);
  for (const TokenId each : pieces_->ends()) add(each);
  TokenId token = draw();
  if (constraint_ != nullptr) {
    const auto chosen = constraint_->choose(token, [&](std::span<const TokenId> allowed) {
      candidates_.clear();
      std::ranges::for_each(allowed, add);
      return draw();
    });
    if (!chosen) return std::unexpected(chosen.error());
    token = *chosen;
  }
  remember(token);
  return token;
}

void TokenChoice::remember(TokenId token) {
  if (window_ == 0) return;
  if (recent_.size() == window_) recent_.pop_front();
  recent_.push_back(token);
}

void TokenChoice::penalize() {
  if (params_.repeat_penalty == 1 && params_.frequency_penalty == 0 &&
      params_.presence_penalty == 0) {
    return;
  }
  std::unordered_map<TokenId, std::size_t> counts;
  for (const TokenId each : recent_) ++counts[each];
  for (const auto& [token, count] : counts) {
    float& logit = logits_[static_cast<std::size_t>(token)];
    logit = logit <= 0 ? logit * params_.repeat_penalty : logit / params_.repeat_penalty;
    logit -= (static_cast<float>(count) * params_.frequency_penalty) + params_.presence_penalty;
  }
}

bool TokenChoice::is_better(const Candidate& one, const Candidate& other) {
  return one.logit != other.logit ? one.logit > other.logit : one.token < other.token;
}

TokenId TokenChoice::draw() {
  const auto best = [this](std::size_t count) {
    return candidates_.begin() + static_cast<std::ptrdiff_t>(count);
  };
  const float temperature = params_.temperature.value_or(kUsualTemperature);
  if (temperature <= 0) return std::ranges::min_element(candidates_, is_better)->token;
  std::size_t count = candidates_.size();
  if (params_.top_k > 0) count = std::min(count, static_cast<std::size_t>(params_.top_k));
  std::ranges::partial_sort(candidates_, best(count), is_better);
  const double highest = candidates_.front().logit;
  /// How likely each of the first is, the best being 1, and the sum of that.
  const auto weigh = [&](double heat) {
    double sum = 0;
    weights_.clear();
    for (std::size_t i = 0; i < count; ++i) {
      sum += weights_.emplace_back(std::exp((candidates_[i].logit - highest) / heat));
    }
    return sum;
  };
  if (params_.top_p < 1) {
    const double enough = weigh(1) * params_.top_p;
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      sum += weights_[i];
      if (sum >= enough) count = i + 1;
    }
  }
  if (params_.min_p > 0) {
    const double least = highest + std::log(static_cast<double>(params_.min_p));
    std::size_t likely = 1;
    while (likely < count && candidates_[likely].logit >= least) ++likely;
    count = likely;
  }
  const double sum = weigh(temperature);
  double left = sum * (static_cast<double>(random_()) / 4294967296.0);
  for (std::size_t i = 0; i + 1 < count; ++i) {
    left -= weights_[i];
    if (left < 0) return candidates_[i].token;
  }
  return candidates_[count - 1].token;
}

}  // namespace sluice

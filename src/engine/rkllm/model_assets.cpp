#include "engine/rkllm/model_assets.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "core/log/log.hpp"
#include "core/text/base64.hpp"
#include "core/text/utf8.hpp"
#include "engine/rkllm/worker/worker_messages.hpp"
#include "rpc/error_codes.hpp"
#include "sluice/schema.hpp"

namespace sluice::rkllm {
namespace {

using Step = ModelAssets::Step;

template <class Params>
json::object params_object(const Params& params) {
  return encode(params).get_object();
}

template <class Number>
std::string base64_of(const std::vector<Number>& numbers) {
  const auto bytes = std::as_bytes(std::span(numbers));
  std::string out;
  append_base64(out, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return out;
}

Step step_of(LoadLora change) {
  return {.kind = Step::Kind::adapter,
          .method = method::kLoadLora,
          .params = params_object(LoraParams{.lora_adapter_path = std::move(change.file.path),
                                             .lora_adapter_name = change.name,
                                             .scale = change.scale}),
          .name = std::move(change.name)};
}
Step step_of(LoadPromptCache change) {
  return {.kind = Step::Kind::cache,
          .method = method::kLoadPromptCache,
          .params = params_object(PathParams{.prompt_cache_path = std::move(change.file.path)})};
}
Step step_of(ReleasePromptCache /*change*/) {
  return {.kind = Step::Kind::no_cache, .method = method::kReleasePromptCache, .params = {}};
}
Step step_of(const SetCrossAttention& change) {
  return {.kind = Step::Kind::cross_attention,
          .method = method::kSetCrossAttnParams,
          .params = params_object(CrossAttnParams{.encoder_k_cache = base64_of(change.k),
                                                  .encoder_v_cache = base64_of(change.v),
                                                  .encoder_mask = base64_of(change.mask),
                                                  .encoder_pos = base64_of(change.positions)})};
}

/// Whether the later step takes the place of the earlier one.
bool replaces(const Step& later, const Step& earlier) {
  using Kind = Step::Kind;
  const auto is_about_cache = [](const Step& step) {
    return step.kind == Kind::cache || step.kind == Kind::no_cache;
  };
  return (is_about_cache(later) && is_about_cache(earlier)) ||
         (later.kind == Kind::cross_attention && earlier.kind == Kind::cross_attention);
}

/// Of the file of a change; empty: it has none.
std::string_view path_of(const ModelChange& change) {
  return std::visit(
      [](const auto& each) -> std::string_view {
        if constexpr (requires { each.file; }) return each.file.path;
        return {};
      },
      change);
}

std::unexpected<Error> name_is_taken() {
  return fail(kInvalidParams, "Invalid params: another adapter has this name");
}

void tell(Step& step, const Result<void>& outcome) {
  for (ChangeDone& each : std::exchange(step.waiting, {})) each(outcome);
}

}  // namespace

void ModelAssets::add(ModelChange change, ChangeDone then) {
  if (!is_valid_utf8(path_of(change))) {
    return then(fail(kInvalidParams,
                     "Invalid params: the file is in a folder whose path is not UTF-8, "
                     "and the runtime would be given another"));
  }
  Step step = std::visit([](auto& each) { return step_of(std::move(each)); }, change);
  if (step.kind == Step::Kind::adapter) {
    std::set<std::string_view> names;
    for (const auto& [name, params] : named_) {
      names.insert(name);
      if (name == step.name && params != step.params) return then(name_is_taken());
    }
    for (auto& [number, known] : steps_) {
      if (known.kind != Step::Kind::adapter) continue;
      names.insert(known.name);
      if (known.name != step.name) continue;
      if (known.params != step.params) return then(name_is_taken());
      if (known.is_done) return then({});
      known.waiting.push_back(std::move(then));
      return;
    }
    if (names.size() >= LoadLora::kMost && !names.contains(step.name)) {
      return then(fail(kInvalidParams, "Invalid params: there are " +
                                           std::to_string(LoadLora::kMost) +
                                           " adapters, and more are not loaded"));
    }
  }
  const auto waiting =
      std::ranges::count_if(steps_, [](const auto& each) { return !each.second.is_done; });
  if (std::cmp_greater_equal(waiting, kMaxWaiting)) {
    return then(fail(kBusy, "Too many changes of the model wait; try again later"));
  }
  step.waiting.push_back(std::move(then));
  steps_.emplace(++last_, std::move(step));
}

std::pair<std::uint64_t, const Step*> ModelAssets::next(std::uint64_t taken,
                                                        std::uint64_t born) const {
  for (auto each = steps_.upper_bound(taken); each != steps_.end(); ++each) {
    // A new process has no cache to release.
    const bool is_needless =
        each->second.kind == Step::Kind::no_cache && each->second.is_done && each->first <= born;
    if (!is_needless) return {each->first, &each->second};
  }
  return {taken, nullptr};
}

void ModelAssets::finish(std::uint64_t number, const Result<void>& outcome) {
  const auto found = steps_.find(number);
  if (found == steps_.end()) return;
  outcome ? succeed(number, found->second) : forget(number, outcome.error());
}

void ModelAssets::succeed(std::uint64_t number, Step& step) {
  step.is_done = true;
  if (step.kind == Step::Kind::cross_attention) has_lost_cross_attention_ = false;
  if (step.kind == Step::Kind::adapter) {
    named_.try_emplace(step.name, step.params);
    const std::lock_guard lock(mutex_);
    adapters_.insert(step.name);
  }
  for (auto each = steps_.begin(); each->first < number;) {
    if (!replaces(step, each->second)) {
      ++each;
      continue;
    }
    tell(each->second, {});
    each = steps_.erase(each);
  }
  tell(step, {});
}

void ModelAssets::forget(std::uint64_t number, const Error& why) {
  Step step = std::move(steps_.extract(number).mapped());
  if (step.is_done) {
    log_error("what an operator has loaded is lost",
              {{"function", step.method}, {"why", std::string_view(why.message)}});
    if (step.kind == Step::Kind::cross_attention) has_lost_cross_attention_ = true;
    const std::lock_guard lock(mutex_);
    adapters_.erase(step.name);
  }
  tell(step, std::unexpected(why));
}

void ModelAssets::abandon(const Error& why) {
  std::vector<std::uint64_t> untaken;
  for (const auto& [number, step] : steps_) {
    if (!step.is_done) untaken.push_back(number);
  }
  for (const std::uint64_t number : untaken) forget(number, why);
}

bool ModelAssets::shapes_prompts() const {
  return std::ranges::any_of(steps_, [](const auto& each) {
    return each.second.kind == Step::Kind::cache || each.second.kind == Step::Kind::cross_attention;
  });
}

bool ModelAssets::has_adapter(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  return adapters_.contains(name);
}

}  // namespace sluice::rkllm

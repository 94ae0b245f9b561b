#include "engine/rkllm/abi/abi.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/rkllm/abi/v1_1.hpp"
#include "engine/rkllm/abi/v1_2_0.hpp"
#include "engine/rkllm/abi/v1_2_1.hpp"
#include "engine/rkllm/abi/v1_3.hpp"

namespace sluice::rkllm {
namespace {

constexpr std::array kAbis = {
    AbiFacts{.abi = Abi::v1_1,
             .name = "1.1",
             .versions = "1.1.0 to 1.1.4",
             .param_bytes = sizeof(v1_1::Param)},
    AbiFacts{.abi = Abi::v1_2_0,
             .name = "1.2.0",
             .versions = "1.2.0",
             .param_bytes = sizeof(v1_2_0::Param),
             .has_history = true,
             .has_logits = true,
             .has_chat_template = true},
    AbiFacts{.abi = Abi::v1_2_1,
             .name = "1.2.1",
             .versions = "1.2.1 to 1.2.3",
             .param_bytes = sizeof(v1_2_1::Param),
             .has_history = true,
             .has_logits = true,
             .has_chat_template = true,
             .has_pause = true,
             .has_thinking = true,
             .has_function_tools = true,
             .has_figures = true,
             .has_image_sizes = true},
    AbiFacts{.abi = Abi::v1_3_0,
             .name = "1.3.0",
             .versions = "1.3.0",
             .param_bytes = sizeof(v1_3::Param),
             .has_history = true,
             .has_logits = true,
             .has_chat_template = true,
             .has_pause = true,
             .has_thinking = true,
             .has_function_tools = true,
             .has_figures = true,
             .has_image_sizes = true,
             .has_image_tags = true,
             .has_sampling_of_run = true},
};

constexpr std::array<std::pair<std::string_view, Abi>, 10> kVersions = {{
    {"1.1.0", Abi::v1_1},
    {"1.1.1", Abi::v1_1},
    {"1.1.2", Abi::v1_1},
    {"1.1.3", Abi::v1_1},
    {"1.1.4", Abi::v1_1},
    {"1.2.0", Abi::v1_2_0},
    {"1.2.1", Abi::v1_2_1},
    {"1.2.2", Abi::v1_2_1},
    {"1.2.3", Abi::v1_2_1},
    {"1.3.0", Abi::v1_3_0},
}};

}  // namespace

std::span<const AbiFacts> all_abis() {
  return kAbis;
}

const AbiFacts& facts_of(Abi abi) {
  return kAbis.at(static_cast<std::size_t>(abi));
}

const AbiFacts* find_abi(std::string_view name) {
  const auto* const found = std::ranges::find(kAbis, name, &AbiFacts::name);
  return found == kAbis.end() ? nullptr : found;
}

const AbiFacts* abi_of_version(std::string_view version) {
  const auto* const found =
      std::ranges::find(kVersions, version, &std::pair<std::string_view, Abi>::first);
  return found == kVersions.end() ? nullptr : &facts_of(found->second);
}

}  // namespace sluice::rkllm

#include "engine/methods/change_call.hpp"

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/methods/numbers_parameter.hpp"
#include "protocol/parameters.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

constexpr std::string_view kLoadLora = "load_lora";
constexpr std::string_view kLoadPromptCache = "load_prompt_cache";
constexpr std::string_view kReleasePromptCache = "release_prompt_cache";
constexpr std::string_view kSetCrossAttention = "set_cross_attn_params";

std::unexpected<Error> bad_change(std::string_view name, std::string_view expected) {
  return fail(kInvalidParams,
              "Invalid params: " + std::string(name) + " must be " + std::string(expected));
}

Result<NamedFile> file_at(const json::object& params, std::string_view name,
                          const OperatorRights& rights) {
  const Result<const ModelFolder*> folder = rights.folder_for(name);
  if (!folder) return std::unexpected(folder.error());
  const Result<std::string> path = text_parameter(params, name);
  if (!path) return std::unexpected(path.error());
  return (*folder)->find(name, *path);
}

Result<ModelChange> load_lora(const json::object& params, const OperatorRights& rights) {
  LoadLora out;
  Result<std::string> name = text_parameter(params, "lora_adapter_name");
  if (!name) return std::unexpected(std::move(name.error()));
  if (name->empty() || name->size() > LoadLora::kMaxName || name->contains('\0')) {
    return bad_change("lora_adapter_name",
                      "a name of 1 to " + std::to_string(LoadLora::kMaxName) + " bytes");
  }
  out.name = *std::move(name);
  if (const json::value* const scale = find_parameter(params, "scale")) {
    constexpr double kMost = 1000;
    const double given = scale->is_number() ? scale->to_number<double>() : kMost + 1;
    if (!(std::abs(given) <= kMost)) return bad_change("scale", "a number from -1000 to 1000");
    out.scale = static_cast<float>(given);
  }
  Result<NamedFile> file = file_at(params, "lora_adapter_path", rights);
  if (!file) return std::unexpected(std::move(file.error()));
  out.file = *std::move(file);
  return out;
}

Result<ModelChange> set_cross_attention(const json::object& params) {
  SetCrossAttention out;
  std::size_t bytes_left = SetCrossAttention::kMaxBytes;
  for (const auto& [name, to] :
       {std::pair{"encoder_k_cache", &out.k}, std::pair{"encoder_v_cache", &out.v},
        std::pair{"encoder_mask", &out.mask}}) {
    Result<std::vector<float>> numbers =
        numbers_parameter<float>(params, name, bytes_left, SetCrossAttention::kMaxBytes);
    if (!numbers) return std::unexpected(std::move(numbers.error()));
    *to = *std::move(numbers);
  }
  Result<std::vector<std::int32_t>> positions = numbers_parameter<std::int32_t>(
      params, "encoder_pos", bytes_left, SetCrossAttention::kMaxBytes);
  if (!positions) return std::unexpected(std::move(positions.error()));
  out.positions = *std::move(positions);
  const std::size_t tokens = out.positions.size();
  if (const json::value* const given = find_parameter(params, "num_tokens")) {
    if (!std::cmp_equal(integer_of(*given).value_or(-1), tokens)) {
      return bad_change("num_tokens", "how many numbers encoder_pos has");
    }
  }
  if (tokens == 0 || out.mask.size() != tokens) {
    return bad_change("encoder_pos", "as long as encoder_mask, and not empty");
  }
  if (out.k.empty() || out.k.size() != out.v.size() || out.k.size() % tokens != 0) {
    return bad_change("encoder_k_cache",
                      "as long as encoder_v_cache, with as many numbers for each token");
  }
  return out;
}

}  // namespace

Result<void> OperatorRights::check(const Principal& caller, std::string_view what) const {
  if (is_operator != nullptr && is_operator(caller)) return {};
  return fail(kInvalidRequest,
              std::string(what) +
                  " is for operators: start the server with --operator NAME, where NAME is that of "
                  "an API key (--api-key NAME=KEY), and call with that key");
}

Result<const ModelFolder*> OperatorRights::folder_for(std::string_view what) const {
  if (folder != nullptr) return folder.get();
  return fail(
      kInvalidRequest,
      std::string(what) + " needs a folder of files: start the server with --model-dir DIR");
}

bool is_change(std::string_view function) {
  return function == kLoadLora || function == kLoadPromptCache || function == kReleasePromptCache ||
         function == kSetCrossAttention;
}

bool has_change(const EngineInfo& engine, std::string_view function) {
  if (function == kLoadLora) return engine.loads_adapters;
  if (function == kSetCrossAttention) return engine.takes_cross_attention;
  return engine.loads_prompt_caches;
}

Result<ModelChange> decode_change(std::string_view function, const json::object& params,
                                  const OperatorRights& rights) {
  if (function == kLoadLora) return load_lora(params, rights);
  if (function == kSetCrossAttention) return set_cross_attention(params);
  if (function == kReleasePromptCache) return ReleasePromptCache{};
  Result<NamedFile> file = file_at(params, "prompt_cache_path", rights);
  if (!file) return std::unexpected(std::move(file.error()));
  return LoadPromptCache{.file = *std::move(file)};
}

}  // namespace sluice

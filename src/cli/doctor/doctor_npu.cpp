// What a model for a Rockchip NPU needs of its board. Paths: Rockchip's kernel (drivers/rknpu) and
// the scripts/fix_freq_*.sh of airockchip/rknn-llm.

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/doctor/doctor_checks.hpp"
#include "cli/serve/npu_engine.hpp"
#include "core/text/text.hpp"
#include "engine/grammar/vocabulary_file.hpp"

namespace sluice {
namespace {

namespace fs = std::filesystem;
using Status = Check::Status;

/// The beginning of a file of the kernel; nothing if it cannot be read.
std::optional<std::string> read_some(const fs::path& path) {
  constexpr std::size_t kMost = 4096;
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string text(kMost, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.pop_back();
  return text;
}

/// Entries of a folder whose names begin or end so, in the order of their names.
std::vector<fs::path> entries(const fs::path& folder, std::string_view begin,
                              std::string_view end) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), none; !error && at != none; at.increment(error)) {
    const std::string name = at->path().filename();
    if (name.starts_with(begin) && name.ends_with(end)) found.push_back(at->path());
  }
  std::ranges::sort(found);
  return found;
}

std::uint64_t highest(const std::string& frequencies) {
  std::uint64_t most = 0;
  std::uint64_t number = 0;
  for (const char c : frequencies + " ") {
    if (is_digit(c)) {
      number = number * 10 + static_cast<std::uint64_t>(c - '0');
    } else {
      most = std::max(most, std::exchange(number, 0));
    }
  }
  return most;
}

/// A clock that the kernel may lower.
struct Frequency {
  std::string name;
  fs::path folder;
  const char* governor;
  const char* current;
  const char* all;
};

std::vector<Frequency> clocks(const fs::path& root) {
  std::vector<Frequency> found;
  const auto add = [&](std::string name, const fs::path& folder, bool is_cpu) {
    found.push_back({std::move(name), folder, is_cpu ? "scaling_governor" : "governor",
                     is_cpu ? "scaling_cur_freq" : "cur_freq",
                     is_cpu ? "scaling_available_frequencies" : "available_frequencies"});
  };
  const fs::path devices = root / "sys/class/devfreq";
  for (const fs::path& memory : entries(devices, "dmc", "dmc")) add("memory", memory, false);
  for (const fs::path& npu : entries(devices, "", ".npu")) add("NPU", npu, false);
  for (const fs::path& policy : entries(root / "sys/devices/system/cpu/cpufreq", "policy", "")) {
    add("CPU " + policy.filename().string().substr(sizeof("policy") - 1) + " and on", policy, true);
  }
  return found;
}

void check_clocks(Checks& out, const fs::path& root) {
  std::string fine;
  for (const Frequency& clock : clocks(root)) {
    const std::string governor = read_some(clock.folder / clock.governor).value_or("unknown");
    const std::uint64_t current = highest(read_some(clock.folder / clock.current).value_or(""));
    const std::uint64_t most = highest(read_some(clock.folder / clock.all).value_or(""));
    const bool is_fixed = governor == "performance" || governor == "userspace";
    if (is_fixed && current >= most) {
      fine.append(fine.empty() ? "" : ", ").append(clock.name);
      continue;
    }
    std::string path = "/";
    path.append(clock.folder.lexically_relative(root).string()).append("/").append(clock.governor);
    out.push_back({Status::warn, "clock",
                   "that of the " + clock.name + " follows the governor \"" + governor +
                       "\", which may keep it low",
                   "As root: echo performance > " + path});
  }
  if (!fine.empty()) out.push_back({Status::ok, "clock", "at its highest: " + fine, ""});
}

void check_driver(Checks& out, const fs::path& root) {
  for (const char* const folder : {"sys/kernel/debug/rknpu", "proc/rknpu"}) {
    const auto version = read_some(root / folder / "version");
    if (!version) continue;
    out.push_back({Status::ok, "NPU driver", *version, ""});
    if (const auto load = read_some(root / folder / "load")) {
      out.push_back({Status::ok, "NPU load", *load, ""});
    }
    return;
  }
  std::error_code error;
  if (!entries(root / "sys/bus/platform/drivers/rocket", "", "").empty()) {
    return out.push_back({Status::fail, "NPU driver",
                          "the kernel has the driver \"rocket\", which RKLLM cannot use",
                          "Use a kernel of the board's maker, with Rockchip's driver rknpu"});
  }
  if (fs::exists(root / "sys/bus/platform/drivers/RKNPU", error)) {
    return out.push_back({Status::note, "NPU driver", "there, of a version that only root may read",
                          "As root: cat /sys/kernel/debug/rknpu/version"});
  }
  out.push_back({Status::fail, "NPU driver", "the kernel has none",
                 "Use a kernel of the board's maker, with Rockchip's driver rknpu"});
}

void check_board(Checks& out, const fs::path& root) {
  static constexpr std::array kChips = {"rk3588", "rk3576", "rk3562", "rv1126b"};
  const std::string compatible = read_some(root / "proc/device-tree/compatible").value_or("");
  const std::string model = read_some(root / "proc/device-tree/model").value_or("this machine");
  const auto* const chip =
      std::ranges::find_if(kChips, [&](const char* name) { return compatible.contains(name); });
  if (chip == kChips.end()) {
    return out.push_back({Status::fail, "board", model + " has no NPU that RKLLM supports",
                          "Run the model on a board with RK3588, RK3576, RK3562 or RV1126B"});
  }
  out.push_back({Status::ok, "board", model + ", " + *chip, ""});
  if (std::string_view(*chip) == "rk3588") {
    out.push_back({Status::note, "speed",
                   "published for RK3588 (airockchip/rknn-llm, w8a8): 32.9 tokens/s with "
                   "Qwen3-0.6B, 16.7 with Qwen2.5-1.5B, 6.2 with Qwen3.5-4B",
                   "If yours is far lower, look at the clocks, above all that of the memory"});
  }
}

}  // namespace

void check_npu(Checks& out, const ServeConfig& config, const std::string& root) {
  std::error_code error;
  const std::string& model = config.engine.model;
  if (!fs::is_regular_file(model, error)) {
    out.push_back({Status::fail, "model", "there is no file " + model,
                   "Give another .rkllm file with --model FILE"});
  } else {
    out.push_back({Status::ok, "model", model, ""});
  }
  const auto chat_template = npu_chat_template(config.engine);
  if (!chat_template) {
    out.push_back({Status::fail, "chat template", chat_template.error().message,
                   "Give another file with --chat-template FILE"});
  } else if (*chat_template == nullptr) {
    out.push_back({Status::note, "chat template",
                   "none beside the model, so the runtime's own is used, without tools",
                   "Put the model's tokenizer_config.json beside the .rkllm file"});
  } else {
    out.push_back({Status::ok, "chat template", "there is one; tools can be used", ""});
  }
  const auto runtime = find_npu_runtime(config.engine);
  const bool has_logits = !runtime || runtime->abi == nullptr || runtime->abi->has_logits;
  if (!has_logits) {
    out.push_back(
        {Status::note, "vocabulary",
         "this version of the runtime takes no grammar; a json_schema is checked when the "
         "answer is whole",
         "Use a runtime since 1.2.0"});
  } else if (const auto tokens = read_vocabulary(fs::path(model).parent_path().string())) {
    out.push_back({Status::ok, "vocabulary",
                   std::to_string(tokens->size()) +
                       " tokens; answers can be held to a grammar if the runtime passes the test "
                       "when the model is loaded",
                   ""});
  } else {
    out.push_back({Status::note, "vocabulary",
                   tokens.error().message +
                       "; so no grammar is taken, and a json_schema is checked "
                       "when the answer is whole",
                   "Put the model's own tokenizer.json and tokenizer_config.json, whole, beside "
                   "the .rkllm file"});
  }
  if (!runtime) {
    out.push_back({Status::fail, "NPU runtime", runtime.error().message,
                   "Install librkllmrt.so of a version that is known, or name it with "
                   "--rkllm-library FILE"});
  } else {
    const std::string version = runtime->version.empty() ? "of no version" : runtime->version;
    const std::string abi = runtime->abi == nullptr
                                ? ", whose interface is found out when it starts"
                                : ", interface " + std::string(runtime->abi->name);
    out.push_back({Status::ok, "NPU runtime", runtime->path + ", " + version + abi, ""});
  }
  check_board(out, root);
  check_driver(out, root);
  check_clocks(out, root);
}

}  // namespace sluice

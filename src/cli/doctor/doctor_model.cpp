#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

#include "cli/doctor/doctor_checks.hpp"
#include "cli/serve/engine_factory.hpp"
#include "cli/serve/npu_engine.hpp"
#include "cli/serve/remote_engine.hpp"

namespace sluice {
namespace {

using Status = Check::Status;

std::string mebibytes(std::uint64_t bytes) {
  return std::to_string((bytes + (1U << 19U)) >> 20U) + " MiB";
}

}  // namespace

void check_model(Checks& out, const MachineFacts& machine, const ServeConfig& config) {
  const std::string& path = config.engine.model;
  const auto add = [&](Status status, std::string finding, std::string fix) {
    out.push_back({status, "model", std::move(finding), std::move(fix)});
  };
  if (config.engine.kind == EngineKind::synthetic) {
    add(Status::ok, "not needed by the synthetic engine", "");
    return;
  }
  if (path.empty()) {
    add(Status::warn, "none given", "Give a GGUF file with --model FILE");
    return;
  }
  if (is_remote_model(path)) {
    const auto engine = make_remote_engine(config.engine);
    if (!engine) return add(Status::fail, engine.error().message, "Give another --model");
    const EngineInfo info = (*engine)->info();
    const std::string context =
        info.context_tokens == 0 ? "" : ", " + std::to_string(info.context_tokens) + " tokens";
    return add(Status::ok, info.model + context + ", run by another server", "");
  }
  if (is_npu_model(path)) return check_npu(out, config);
  if (const auto can = check_backend(config); !can) {
    add(Status::fail, can.error().message, "Give another --backend, or leave it out");
    return;
  }
  const auto tensors = check_model_file(path);
  if (!tensors) {
    add(Status::fail, tensors.error().message, "Give another GGUF file with --model FILE");
    return;
  }
  std::error_code ignored;
  const std::uint64_t size = std::filesystem::file_size(path, ignored);
  const std::string finding =
      path + ", " + mebibytes(size) + ", " + std::to_string(*tensors) + " tensors";
  if (size > machine.memory_available && machine.memory_available != 0) {
    const bool hopeless = size > machine.memory_total;
    add(hopeless ? Status::fail : Status::warn,
        finding + ", more than the " + mebibytes(machine.memory_available) + " available",
        "Use a smaller or more quantized model, or free some memory");
    return;
  }
  if (const auto fits = check_context(config); !fits) {
    add(Status::fail, fits.error().message, "Give a smaller --context or fewer --slots");
    return;
  }
  add(Status::ok, finding, "");
}

}  // namespace sluice

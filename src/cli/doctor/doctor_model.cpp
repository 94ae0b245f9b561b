#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/doctor/doctor_checks.hpp"
#include "cli/serve/engine_factory.hpp"

namespace sluice {
namespace {

using Status = Check::Status;

/// The fixed part of a GGUF file (GGUF specification, "File Structure"), little-endian.
struct GgufHeader {
  std::array<char, 4> magic;
  std::uint32_t version;
  std::uint64_t tensors;
  std::uint64_t metadata_entries;
};
static_assert(sizeof(GgufHeader) == 24);

constexpr const char* kGetAnother = "Download it again, or give another file with --model";

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
  if (const auto can = check_backend(config); !can) {
    add(Status::fail, can.error().message, "Give another --backend, or leave it out");
    return;
  }
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) {
    add(Status::fail, path + ": " + std::strerror(errno), "Give a GGUF file with --model FILE");
    return;
  }
  if (S_ISDIR(info.st_mode)) {
    add(Status::fail, path + " is a directory", "Name the .gguf file in it");
    return;
  }
  if (!S_ISREG(info.st_mode)) {
    add(Status::fail, path + " is not a regular file", "Give a GGUF file with --model FILE");
    return;
  }
  if (::access(path.c_str(), R_OK) != 0) {
    add(Status::fail, path + " cannot be read by this user", "chmod a+r " + path);
    return;
  }
  GgufHeader header{};
  std::ifstream file(path, std::ios::binary);
  if (!file.read(reinterpret_cast<char*>(&header), sizeof header)) {
    add(Status::fail, path + " is truncated: it ends inside its header", kGetAnother);
    return;
  }
  if (std::memcmp(header.magic.data(), "GGUF", 4) != 0) {
    add(Status::fail, path + " is not a GGUF file", kGetAnother);
    return;
  }
  if (header.version < 2 || header.version > 3) {
    add(Status::fail,
        path + " has GGUF version " + std::to_string(header.version) + "; only 2 and 3 can be read",
        "Convert the model again");
    return;
  }
  // Each tensor and each metadata entry has at least the length of its name, the name and a type.
  constexpr std::uint64_t kLeastEntry = 13;
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (header.tensors > size / kLeastEntry || header.metadata_entries > size / kLeastEntry ||
      header.tensors == 0) {
    add(Status::fail, path + " is truncated or broken: its header does not match its size",
        kGetAnother);
    return;
  }
  const std::string finding =
      path + ", " + mebibytes(size) + ", " + std::to_string(header.tensors) + " tensors";
  if (size > machine.memory_available && machine.memory_available != 0) {
    const bool hopeless = size > machine.memory_total;
    add(hopeless ? Status::fail : Status::warn,
        finding + ", more than the " + mebibytes(machine.memory_available) + " available",
        "Use a smaller or more quantized model, or free some memory");
    return;
  }
  add(Status::ok, finding, "");
}

}  // namespace sluice

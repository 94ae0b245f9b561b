#pragma once

#include <cstdint>
#include <istream>
#include <string>

#include "core/error.hpp"
#include "engine/llama/model/model_fault.hpp"

namespace sluice {

struct GgufSummary {
  std::uint32_t version = 0;
  std::uint64_t tensors = 0;
  std::uint64_t tensor_bytes = 0;
  std::string architecture;
};

/// Reads the header of a GGUF file (ggml, gguf.h) from its first byte. Checks that the header is
/// within the file's `size` bytes and follows the format's rules, and that the data of all tensors
/// is present. llama.cpp would crash on such faults or notice them late. Errors have a ModelFault.
Result<GgufSummary> check_gguf(std::istream& file, std::uint64_t size);

/// Does the same for the file at `path`, which must exist and be a regular file.
Result<GgufSummary> check_gguf_file(const std::string& path);

}  // namespace sluice

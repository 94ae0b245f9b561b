// The check of a model file's header, which runs before llama.cpp reads the file.

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "engine/llama/model/gguf_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::istringstream file(std::string(reinterpret_cast<const char*>(data), size));
  // As a complete file, and as the beginning of a larger file in which the sizes would add up.
  (void)sluice::check_gguf(file, size);
  file.clear();
  file.seekg(0);
  (void)sluice::check_gguf(file, std::uint64_t{1} << 40U);
  return 0;
}

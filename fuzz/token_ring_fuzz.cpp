// The ring of tokens that a worker process shares with its server, when that process has damaged
// the memory. The reader finds records or says that the memory is damaged, and reads nothing else.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <sys/mman.h>

#include "engine/rkllm/worker/token_ring.hpp"
#include "require.hpp"

namespace {

using namespace sluice;
using namespace sluice::rkllm;

constexpr std::size_t kBytes = 4096;
constexpr std::size_t kPage = 4096;

}  // namespace

/// The first 8 bytes are how much was written; the rest is what the records are.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::uint64_t written = 0;
  if (size < sizeof written) return 0;
  auto ring = TokenRing::make(kBytes);
  require(ring.has_value());
  void* const memory = ::mmap(nullptr, kPage + kBytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                              ring->files().memory.get(), 0);
  require(memory != MAP_FAILED);
  std::memcpy(&written, data, sizeof written);
  if (written % 3 != 0) written %= 2 * kBytes;  // mostly what may be right
  std::memcpy(memory, &written, sizeof written);
  std::memcpy(static_cast<char*>(memory) + kPage, data + sizeof written,
              std::min(size - sizeof written, kBytes));
  std::size_t bytes = 0;
  for (auto record = ring->read(); record && *record; record = ring->read()) {
    require((*record)->bytes.size() <= kBytes);
    bytes += (*record)->bytes.size();
  }
  require(bytes <= kBytes);
  ::munmap(memory, kPage + kBytes);
  return 0;
}

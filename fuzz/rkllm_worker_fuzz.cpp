// The worker process of an NPU's model, and what its server says to it: each request has one
// answer, which is a line of JSON.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/rkllm/runtime/library_file.hpp"
#include "engine/rkllm/worker/worker.hpp"
#include "json/json.hpp"
#include "require.hpp"
#include "rpc/message.hpp"

namespace {

using namespace sluice;

void run_worker(std::string_view text) {
  auto ring = rkllm::TokenRing::make(4096);
  require(ring.has_value());
  std::vector<std::string> answers;
  std::size_t asked = 0;
  {
    rkllm::Worker worker(*std::move(ring),
                         [&answers](std::string_view line) { answers.emplace_back(line); });
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      worker.take(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
      ++asked;
    }
  }
  require(answers.size() <= asked);
  for (const std::string& each : answers) {
    require(!each.contains('\n') && parse_json(each).has_value());
  }
}

}  // namespace

/// The first byte says what the rest is: lines for a worker, or the bytes of a library.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 0) {
    run_worker(text);
  } else {
    const std::string version = rkllm::version_in(text);
    require(version.empty() || text.contains(version));
  }
  return 0;
}

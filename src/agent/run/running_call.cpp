#include "agent/run/running_call.hpp"

#include <string_view>
#include <utility>

#include "agent/history/tool_image.hpp"

namespace sluice {
namespace {

/// Of what tool_status shows.
constexpr std::size_t kMaxTail = 4096;

/// Keeps at least the last `limit` bytes; moves them only every now and then. Returns how many are
/// dropped.
std::size_t keep_end(std::string& text, std::size_t limit) {
  if (text.size() <= 2 * limit) return 0;
  const std::size_t dropped = text.size() - limit;
  text.erase(0, dropped);
  return dropped;
}

constexpr std::string_view kAnew =
    "[the call was made anew, and this is its output from then on]\n";

}  // namespace

void RunningCall::begin_anew() {
  unseen = kAnew;
  cut = 0;
  unseen_range.reset();
  unseen_images.clear();
  tail = kAnew;
}

void RunningCall::add_unseen(std::string_view text, std::uint64_t number, std::size_t limit) {
  unseen += text;
  cut += keep_end(unseen, limit);
  if (!unseen_range) unseen_range = {.first = number, .last = number};
  unseen_range->last = number;
  tail += text;
  keep_end(tail, kMaxTail);
}

void RunningCall::add_unseen(ChatImage image, std::size_t most) {
  unseen_images.push_back(std::move(image));
  keep_last(unseen_images, most);
}

}  // namespace sluice

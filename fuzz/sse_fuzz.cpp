// The event stream decoder. Any split of the bytes gives the same events, within the limits. What
// the encoder writes is decoded unchanged.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "net/http/sse.hpp"
#include "require.hpp"

namespace {

using namespace sluice;

constexpr SseDecoder::Limits kLimits = {.line = 256, .event = 1024};

struct Reading {
  std::vector<std::string> events;
  bool failed = false;
  std::string last_event_id;
  bool operator==(const Reading&) const = default;
};

Reading read(std::string_view bytes, std::size_t step, SseDecoder::Limits limits) {
  SseDecoder decoder(limits);
  Reading reading;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    const Result<void> fed = decoder.feed(bytes.substr(at, step), [&](const SseEvent& event) {
      require(event.data.size() < limits.event);
      reading.events.push_back(std::string(event.type) + '\0' + std::string(event.data) + '\0' +
                               std::string(event.last_event_id));
    });
    if (!fed) reading.failed = true;
  }
  reading.last_event_id = decoder.last_event_id();
  return reading;
}

}  // namespace

/// The first byte chooses the size of the pieces.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::size_t step = 1U + data[0] % 64U;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  require(read(bytes, bytes.size() + 1, kLimits) == read(bytes, step, kLimits));

  std::string encoded;
  append_sse_event(encoded, std::uint64_t{7}, bytes);
  append_sse_comment(encoded, bytes);
  const Reading back = read(encoded, step, {.line = 2 * size + 16, .event = 2 * size + 16});
  // A line break of any kind is decoded as '\n'.
  std::string data_of_event;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == '\r' && i + 1 < bytes.size() && bytes[i + 1] == '\n') continue;
    data_of_event.push_back(bytes[i] == '\r' ? '\n' : bytes[i]);
  }
  require(!back.failed && back.events.size() == 1);
  require(back.events[0] == std::string("message") + '\0' + data_of_event + '\0' + "7");
  return 0;
}

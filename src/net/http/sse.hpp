#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace sluice {

/// Appends one event (WHATWG HTML, section 9.2.6): `event:` and `id:` if not empty, a `data:` line
/// for each line of `data`, and the empty line that ends it. `id` and `event` hold no line breaks.
void append_sse_event(std::string& out, std::string_view id, std::string_view data,
                      std::string_view event = {});

/// The same for a numeric id.
void append_sse_event(std::string& out, std::uint64_t id, std::string_view data);

/// Appends a comment line, which readers ignore. It keeps proxies and idle timers from ending the
/// connection.
void append_sse_comment(std::string& out, std::string_view text = {});

/// Appends `retry:`: how long a reader waits before it connects again.
void append_sse_retry(std::string& out, std::uint64_t milliseconds);

/// One event as a reader dispatches it. Views are valid during the callback.
struct SseEvent {
  std::string_view type;  // "message" unless the event names one
  std::string_view data;  // lines joined by '\n'
  std::string_view last_event_id;
  bool has_id;  // that is its own; else it is that of an event before it
};

/// Decodes an event stream that arrives in pieces of any size (WHATWG HTML, section 9.2.6).
/// Bounded: a line or an event larger than the limits is an error, after which the decoder accepts
/// nothing more.
class SseDecoder {
 public:
  using Sink = std::function<void(const SseEvent&)>;

  struct Limits {
    std::size_t line = 16U << 20U;
    std::size_t event = 16U << 20U;  // data of one event
  };

  SseDecoder() = default;
  explicit SseDecoder(Limits limits) : limits_(limits) {}

  /// What is fed from now on is a new stream of the same source. `last_event_id` is what the source
  /// was asked to go on from, and holds until an event names its own. So does the reconnection
  /// time.
  void begin_stream(std::string_view last_event_id);

  /// Feeds bytes; calls `sink` for each event that they complete. The error's code is 502.
  Result<void> feed(std::string_view bytes, const Sink& sink);

  /// The id to resume from, also if it is that of an event without data, which is not dispatched;
  /// and the reconnection time that the server asked for.
  [[nodiscard]] const std::string& last_event_id() const { return last_event_id_; }
  [[nodiscard]] std::optional<std::uint64_t> retry_milliseconds() const { return retry_; }

 private:
  Result<void> take_line(std::string_view line, const Sink& sink);
  void dispatch(const Sink& sink);

  Limits limits_{};
  std::string line_;  // the unfinished line
  std::string data_;
  std::string type_;
  std::string id_;  // of the event being read
  bool has_id_ = false;
  std::string last_event_id_;
  std::optional<std::uint64_t> retry_;
  std::uint8_t bom_seen_ = 0;  // bytes of a leading BOM that have arrived; 3: past it
  bool after_cr_ = false;
  bool failed_ = false;
};

}  // namespace sluice

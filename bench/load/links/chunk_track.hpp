#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tally.hpp"

namespace sluice::bench {

/// Follows the chunks of one stream by the number and the time in each: `"seq":N` (or
/// `"progress":N`), and `t_ns` in CLOCK_MONOTONIC nanoseconds, escaped or not. A number that does
/// not follow the previous one is an error.
class ChunkTrack {
 public:
  /// `label` is the member name of the number, with quotes and colon. If `interval_ns` > 0, chunks
  /// are paced, and are measured against that pace too.
  ChunkTrack(std::string_view label, std::int64_t interval_ns)
      : label_(label), interval_ns_(interval_ns) {}

  void restart();
  /// Takes a text with one chunk. Returns false if there is none.
  bool take(std::string_view text, std::int64_t now, Tally& tally);
  /// Takes a text with any number of chunks. Returns how many.
  std::size_t take_all(std::string_view text, std::int64_t now, Tally& tally);

  [[nodiscard]] std::int64_t taken() const { return taken_; }
  /// The number after the last one.
  [[nodiscard]] std::int64_t next() const { return next_; }

 private:
  /// Reads the chunk whose number is written at `digits`; returns where the number ends.
  std::size_t read(std::string_view text, std::size_t digits, std::int64_t now, Tally& tally);
  void read_stamp(std::string_view text, std::size_t from, std::int64_t now, Tally& tally);

  std::string_view label_;
  std::int64_t interval_ns_;
  std::int64_t next_ = -1;  // -1: any number
  std::int64_t taken_ = 0;
  std::int64_t first_stamp_ = 0;
  std::int64_t first_number_ = 0;
  std::int64_t last_read_ = 0;
  // Their positions in the last text, which are tried first.
  std::size_t label_hint_ = 0;
  std::size_t stamp_hint_ = 0;  // relative to the end of the number
};

/// Whether a chunk's text says that it is its stream's last.
bool is_last_chunk(std::string_view text);

/// The text of `"stream_id":"..."`, or empty.
std::string_view find_stream_id(std::string_view text);

}  // namespace sluice::bench

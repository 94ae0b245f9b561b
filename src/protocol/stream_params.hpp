#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "json/json.hpp"
#include "stream/chunk_log.hpp"

namespace sluice {

// Parameters of the stream methods (docs/streaming.md). All errors are -32602 and name the
// parameter, what it was and what it may be.

/// The longest a poll may wait.
inline constexpr std::chrono::milliseconds kMaxPollWait = std::chrono::minutes(1);
/// The widest window a reader may ask for, in chunks.
inline constexpr std::size_t kMaxWindow = std::size_t{1} << 20U;

/// `run` that starts a generation.
struct RunStart {
  bool stream = false;
  int priority = 0;
  std::size_t window = 0;  // of a WebSocket reader; 0: unbounded
};
/// `run` that reads a stream.
struct RunPoll {
  std::string stream_id;
  std::optional<Seq> from;  // acknowledges what is below; absent: from the oldest kept chunk
  std::chrono::milliseconds wait{};
  std::size_t max_chunks = kMaxWindow;  // in one reply
};

/// Whether a `run` reads a stream: it has a `stream_id`.
bool is_poll(const json::object& params);
Result<RunStart> decode_run_start(const json::object& params);
Result<RunPoll> decode_run_poll(const json::object& params);

/// `stream_id`, 16 characters of [a-z0-9]. Anything else of type string is a stream nobody has.
Result<std::string> decode_stream_id(const json::object& params);

struct Subscribe {
  std::string stream_id;
  std::optional<Seq> from;  // absent: from the oldest kept chunk
  std::size_t window = 0;
};
Result<Subscribe> decode_subscribe(const json::object& params);

struct Acknowledge {
  std::string stream_id;
  Seq seq = 0;  // the first chunk not yet received
};
Result<Acknowledge> decode_ack(const json::object& params);

/// A sequence number in text, as in Last-Event-ID and `?from_seq=`.
std::optional<Seq> parse_seq(std::string_view text);

}  // namespace sluice

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

// Parameters of the stream methods (docs/streaming.md). All errors are -32602; they name the
// parameter and say what it must be.

/// The longest a poll may wait.
inline constexpr std::chrono::milliseconds kMaxPollWait = std::chrono::minutes(1);
/// The widest window a reader may ask for, in chunks.
inline constexpr std::size_t kMaxWindow = std::size_t{1} << 20U;

/// Parameters of a `run` that starts a generation.
struct RunStart {
  bool stream = false;
  int priority = 0;
  std::size_t window = 0;  // window of a WebSocket reader, in chunks; 0: unlimited
};
/// Parameters of a `run` that reads a stream.
struct RunPoll {
  std::string stream_id;
  std::optional<Seq> from;  // acknowledges all chunks below; absent: start at the oldest kept chunk
  std::chrono::milliseconds wait{};
  std::size_t max_chunks = kMaxWindow;  // the most chunks in one reply
};

/// Whether a `run` reads a stream, which is so if it has a `stream_id`.
bool is_poll(const json::object& params);
Result<RunStart> decode_run_start(const json::object& params);
/// Whether a `run` that starts a generation asks for a stream. `usually`: if it does not say.
bool wants_stream(const json::object& params, bool usually);
Result<RunPoll> decode_run_poll(const json::object& params);

/// Decodes `stream_id`, which is 16 characters of [a-z0-9]. Any other string is accepted too, as
/// the id of no stream.
Result<std::string> decode_stream_id(const json::object& params);

struct Subscribe {
  std::string stream_id;
  std::optional<Seq> from;  // absent: start at the oldest kept chunk
  std::size_t window = 0;
};
Result<Subscribe> decode_subscribe(const json::object& params);

struct Acknowledge {
  std::string stream_id;
  Seq seq = 0;  // the first chunk not yet received
};
Result<Acknowledge> decode_ack(const json::object& params);

/// Parses a sequence number, as in Last-Event-ID and `?from_seq=`.
std::optional<Seq> parse_seq(std::string_view text);

}  // namespace sluice

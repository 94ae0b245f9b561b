#include "protocol/stream_params.hpp"

#include <charconv>
#include <limits>
#include <optional>

#include "protocol/parameters.hpp"
#include "rpc/error_codes.hpp"
#include "stream/stream_manager.hpp"

namespace sluice {
namespace {

std::unexpected<Error> bad_parameter(std::string_view name, std::string_view expected) {
  return fail(kInvalidParams,
              "Invalid params: " + std::string(name) + " must be " + std::string(expected));
}

/// An integer in [low, high], or `absent` if the parameter is absent.
Result<std::int64_t> integer(const json::object& params, std::string_view name, std::int64_t low,
                             std::int64_t high, std::int64_t absent) {
  const json::value* const value = find_parameter(params, name);
  if (value == nullptr) return absent;
  const std::optional<std::int64_t> number = integer_of(*value);
  if (!number || *number < low || *number > high) {
    return bad_parameter(name,
                         "an integer from " + std::to_string(low) + " to " + std::to_string(high));
  }
  return *number;
}

constexpr std::int64_t kMaxSeq = std::numeric_limits<std::int64_t>::max();

Result<Seq> sequence(const json::object& params, std::string_view name) {
  const Result<std::int64_t> number = integer(params, name, 0, kMaxSeq, -1);
  if (!number || *number < 0)
    return bad_parameter(name, "a sequence number (an integer of at least 0)");
  return static_cast<Seq>(*number);
}

}  // namespace

bool is_poll(const json::object& params) {
  return params.contains("stream_id");
}

Result<RunStart> decode_run_start(const json::object& params) {
  RunStart start;
  if (const json::value* stream = find_parameter(params, "stream")) {
    if (!stream->is_bool()) return bad_parameter("stream", "true or false");
    start.stream = stream->get_bool();
  }
  const Result<std::int64_t> priority =
      integer(params, "priority", StreamManager::kMinPriority, StreamManager::kMaxPriority, 0);
  if (!priority) return std::unexpected(priority.error());
  start.priority = static_cast<int>(*priority);
  const Result<std::int64_t> window =
      integer(params, "window", 1, static_cast<std::int64_t>(kMaxWindow), 0);
  if (!window) return std::unexpected(window.error());
  start.window = static_cast<std::size_t>(*window);
  return start;
}

bool wants_stream(const json::object& params, bool usually) {
  const json::value* const stream = find_parameter(params, "stream");
  return stream == nullptr ? usually : stream->is_bool() && stream->get_bool();
}

Result<RunPoll> decode_run_poll(const json::object& params) {
  RunPoll poll;
  Result<std::string> id = decode_stream_id(params);
  if (!id) return std::unexpected(std::move(id.error()));
  poll.stream_id = std::move(*id);
  if (find_parameter(params, "from_seq") != nullptr) {
    const Result<Seq> from = sequence(params, "from_seq");
    if (!from) return std::unexpected(from.error());
    poll.from = *from;
  }
  const Result<std::int64_t> wait = integer(params, "wait_ms", 0, kMaxPollWait.count(), 0);
  if (!wait) return std::unexpected(wait.error());
  poll.wait = std::chrono::milliseconds(*wait);
  static constexpr auto kMost = static_cast<std::int64_t>(kMaxWindow);
  const Result<std::int64_t> max_chunks = integer(params, "max_chunks", 1, kMost, kMost);
  if (!max_chunks) return std::unexpected(max_chunks.error());
  poll.max_chunks = static_cast<std::size_t>(*max_chunks);
  return poll;
}

Result<std::string> decode_stream_id(const json::object& params) {
  const json::value* const id = params.if_contains("stream_id");
  if (id == nullptr || !id->is_string())
    return bad_parameter("stream_id", "the stream_id that run returned");
  return std::string(id->get_string());
}

Result<Subscribe> decode_subscribe(const json::object& params) {
  Subscribe subscribe;
  Result<std::string> id = decode_stream_id(params);
  if (!id) return std::unexpected(std::move(id.error()));
  subscribe.stream_id = std::move(*id);
  if (find_parameter(params, "from_seq") != nullptr) {
    const Result<Seq> from = sequence(params, "from_seq");
    if (!from) return std::unexpected(from.error());
    subscribe.from = *from;
  }
  const Result<std::int64_t> window =
      integer(params, "window", 1, static_cast<std::int64_t>(kMaxWindow), 0);
  if (!window) return std::unexpected(window.error());
  subscribe.window = static_cast<std::size_t>(*window);
  return subscribe;
}

Result<Acknowledge> decode_ack(const json::object& params) {
  Result<std::string> id = decode_stream_id(params);
  if (!id) return std::unexpected(std::move(id.error()));
  const Result<Seq> seq = sequence(params, "seq");
  if (!seq) return std::unexpected(seq.error());
  return Acknowledge{.stream_id = std::move(*id), .seq = *seq};
}

std::optional<Seq> parse_seq(std::string_view text) {
  Seq seq = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seq);
  if (error != std::errc() || end != text.data() + text.size() || text.empty() ||
      seq > static_cast<Seq>(kMaxSeq)) {
    return std::nullopt;
  }
  return seq;
}

}  // namespace sluice

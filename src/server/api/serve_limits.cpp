#include "server/api/serve_limits.hpp"

#include <chrono>

namespace sluice {
namespace {

Result<void> check(const ServeOptions& options) {
  if (options.max_message == 0) return fail(1, "max_message must not be 0");
  // A growing buffer takes up to twice the size of its contents.
  if (options.max_message > options.connection_memory / 2) {
    return fail(1, "max_message is more than half of connection_memory");
  }
  // With less, a stream that keeps nothing may already be short of memory.
  if (options.stream_memory < std::size_t{64} << 10U) {
    return fail(1, "stream_memory is less than 64 KiB");
  }
  if (options.max_stream_bytes > options.stream_memory) {
    return fail(1, "max_stream_bytes is more than stream_memory");
  }
  if (options.max_task_result > options.task_memory / 2) {
    return fail(1, "max_task_result is more than half of task_memory");
  }
  // The default gives way to a lower limit.
  if (options.task_ttl > options.max_task_ttl && options.task_ttl != ServeOptions().task_ttl) {
    return fail(1, "task_ttl is more than max_task_ttl");
  }
  return {};
}

std::chrono::milliseconds in_milliseconds(std::chrono::milliseconds duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(at_most_forever(duration));
}

}  // namespace

Result<void> set_limits(const ServeOptions& options, ServerHostOptions& host) {
  if (Result<void> checked = check(options); !checked) return checked;
  host.threads = options.threads;
  host.max_message = options.max_message;
  host.end_timeout = at_most_forever(options.shutdown_deadline);
  host.connection_memory = options.connection_memory;
  host.http.max_connections = options.max_connections;
  host.http.max_connections_per_client = options.max_connections_per_address;
  host.http.max_header_bytes = options.max_header;
  host.http.gzip_threshold = options.compression_threshold;
  host.http.request_timeout = at_most_forever(options.request_timeout);
  host.http.idle_timeout = at_most_forever(options.idle_timeout);
  host.http.output.stall_timeout = at_most_forever(options.write_timeout);
  host.http.event_keep_alive = at_most_forever(options.event_keep_alive);
  host.http.ping_interval = at_most_forever(options.ping_interval);
  host.sessions = {.max_sessions = options.max_sessions,
                   .per_client = options.sessions_per_client,
                   .expiry = at_most_forever(options.session_expiry),
                   .resume_window = at_most_forever(options.resume_window)};
  host.calls_per_client = options.calls_per_client;
  host.tasks = {.max_tasks = options.max_tasks,
                .per_client = options.tasks_per_client,
                .ttl = in_milliseconds(options.task_ttl),
                .max_ttl = in_milliseconds(options.max_task_ttl),
                .poll_interval = in_milliseconds(options.task_poll_interval),
                .max_result = options.max_task_result,
                .result_memory = options.task_memory};
  host.max_streams = options.max_streams;
  host.streams_per_client = options.streams_per_client;
  host.stream_memory = options.stream_memory;
  host.limits = {.max_chunks = options.max_stream_chunks,
                 .max_bytes = options.max_stream_bytes,
                 .retained_bytes = options.retained_stream_bytes,
                 .expiry = at_most_forever(options.stream_expiry),
                 .tombstone = at_most_forever(options.stream_tombstone),
                 .stall = at_most_forever(options.stream_stall)};
  return {};
}

}  // namespace sluice

#include "server/api/serve_limits.hpp"

#include <chrono>
#include <gtest/gtest.h>
#include <limits>
#include <string>

#include "sluice/server.hpp"

namespace sluice {
namespace {

TEST(ServeLimits, WhatIsNotSetIsAsItIsWithoutThisApi) {
  const ServerHostOptions defaults;
  ServerHostOptions host;
  ASSERT_TRUE(set_limits({}, host));
  EXPECT_EQ(host.max_message, defaults.max_message);
  EXPECT_EQ(host.end_timeout, defaults.end_timeout);
  EXPECT_EQ(host.connection_memory, defaults.connection_memory);
  EXPECT_EQ(host.http.max_connections, defaults.http.max_connections);
  EXPECT_EQ(host.http.max_connections_per_client, defaults.http.max_connections_per_client);
  EXPECT_EQ(host.http.max_header_bytes, defaults.http.max_header_bytes);
  EXPECT_EQ(host.http.gzip_threshold, defaults.http.gzip_threshold);
  EXPECT_EQ(host.http.request_timeout, defaults.http.request_timeout);
  EXPECT_EQ(host.http.idle_timeout, defaults.http.idle_timeout);
  EXPECT_EQ(host.http.output.stall_timeout, defaults.http.output.stall_timeout);
  EXPECT_EQ(host.http.event_keep_alive, defaults.http.event_keep_alive);
  EXPECT_EQ(host.http.ping_interval, defaults.http.ping_interval);
  EXPECT_EQ(host.sessions.per_client, defaults.sessions.per_client);
  EXPECT_EQ(host.sessions.expiry, defaults.sessions.expiry);
  EXPECT_EQ(host.sessions.resume_window, defaults.sessions.resume_window);
  EXPECT_EQ(host.calls_per_client, defaults.calls_per_client);
  EXPECT_EQ(host.tasks.max_tasks, defaults.tasks.max_tasks);
  EXPECT_EQ(host.tasks.per_client, defaults.tasks.per_client);
  EXPECT_EQ(host.tasks.ttl, defaults.tasks.ttl);
  EXPECT_EQ(host.tasks.max_ttl, defaults.tasks.max_ttl);
  EXPECT_EQ(host.tasks.poll_interval, defaults.tasks.poll_interval);
  EXPECT_EQ(host.tasks.max_result, defaults.tasks.max_result);
  EXPECT_EQ(host.tasks.result_memory, defaults.tasks.result_memory);
  EXPECT_EQ(host.max_streams, defaults.max_streams);
  EXPECT_EQ(host.streams_per_client, defaults.streams_per_client);
  EXPECT_EQ(host.stream_memory, defaults.stream_memory);
  EXPECT_EQ(host.limits.max_chunks, defaults.limits.max_chunks);
  EXPECT_EQ(host.limits.max_bytes, defaults.limits.max_bytes);
  EXPECT_EQ(host.limits.retained_bytes, defaults.limits.retained_bytes);
  EXPECT_EQ(host.limits.expiry, defaults.limits.expiry);
  EXPECT_EQ(host.limits.tombstone, defaults.limits.tombstone);
  EXPECT_EQ(host.limits.stall, defaults.limits.stall);
}

TEST(ServeLimits, AreWhatTheOptionsSay) {
  ServerHostOptions host;
  using std::chrono::milliseconds;
  ASSERT_TRUE(set_limits({.calls_per_client = 3,
                          .max_tasks = 4,
                          .max_streams = 5,
                          .stream_expiry = milliseconds::max()},
                         host));
  EXPECT_EQ(host.calls_per_client, 3U);
  EXPECT_EQ(host.tasks.max_tasks, 4U);
  EXPECT_EQ(host.max_streams, 5U);
  EXPECT_EQ(host.limits.expiry, kForever);
}

TEST(ServeLimits, ThoseThatContradictEachOtherAreRefused) {
  const auto refusal = [](const ServeOptions& options) {
    const auto refused = start(Server("test", "1"), http{.port = 0}, options);
    return refused ? std::string() : refused.error().message;
  };
  EXPECT_EQ(refusal({.threads = 1, .max_message = 0}), "max_message must not be 0");
  EXPECT_EQ(refusal({.threads = 1, .connection_memory = 1 << 20}),
            "max_message is more than half of connection_memory");
  EXPECT_EQ(refusal({.threads = 1, .max_stream_bytes = 1, .stream_memory = 65'535}),
            "stream_memory is less than 64 KiB");
  EXPECT_EQ(refusal({.threads = 1, .stream_memory = 65'536}),
            "max_stream_bytes is more than stream_memory");
  EXPECT_EQ(refusal({.threads = 1, .task_memory = 1}),
            "max_task_result is more than half of task_memory");
  EXPECT_EQ(refusal({.task_ttl = std::chrono::milliseconds(2),
                     .max_task_ttl = std::chrono::milliseconds(1)}),
            "task_ttl is more than max_task_ttl");
}

}  // namespace
}  // namespace sluice

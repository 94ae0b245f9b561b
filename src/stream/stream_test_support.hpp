#pragma once

#include <cstddef>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/manual_executor.hpp"
#include "json/json.hpp"
#include "stream/push_cursor.hpp"
#include "stream/stream.hpp"
#include "stream/stream_manager.hpp"

namespace sluice {

// Helpers that the tests in this folder share.

/// A stream manager on a loop with a manual clock, with limits that a test can reach.
struct StreamBench {
  struct Setup {
    StreamLimits limits = {};
    std::size_t memory = std::size_t{64} << 20U;
    std::size_t per_client = 1000;
    std::size_t max_streams = 100000;
  };

  explicit StreamBench(const Setup& setup)
      : policy(setup.limits, setup.memory, setup.per_client, setup.max_streams),
        streams(std::make_unique<StreamManager>(executor, policy, 0, 1)) {}
  StreamBench() : StreamBench(Setup{}) {}

  std::shared_ptr<ChunkStream> start(StreamManager::StartOptions options = {.principal = "alice",
                                                                            .method = "run"}) {
    Result<std::shared_ptr<ChunkStream>> stream = streams->start(std::move(options));
    return stream ? std::move(*stream) : nullptr;
  }
  std::shared_ptr<ChunkStream> start_pushed() {
    return start({.principal = "alice", .method = "run", .expects_poller = false});
  }

  ManualExecutor executor;
  StreamPolicy policy;
  std::unique_ptr<StreamManager> streams;
};

/// Expects all current-value counters and budgets to be zero.
inline void expect_nothing_left(StreamBench& bench) {
  EXPECT_EQ(bench.policy.budget.used(), 0U);
  EXPECT_EQ(bench.streams->counters().open, 0U);
  EXPECT_EQ(bench.streams->counters().active, 0U);
  EXPECT_EQ(bench.streams->counters().unread, 0U);
  EXPECT_EQ(bench.streams->counters().started, bench.streams->counters().ended);
  EXPECT_TRUE(bench.streams->streams_of("alice", 1).empty());
}

/// A producer that counts its calls.
class CountingProducer final : public StreamProducer {
 public:
  ~CountingProducer() override {
    for (const auto& weak : streams_) {
      const auto stream = weak.lock();
      if (stream != nullptr && stream->producer() == this) stream->set_producer(nullptr);
    }
  }
  void drive(const std::shared_ptr<ChunkStream>& stream) {
    stream->set_producer(this);
    streams_.push_back(stream);
  }

  void on_writable() override {
    ++writable_calls;
    if (when_writable) when_writable();
  }
  void on_cancel() override {
    ++cancels;
    if (when_cancelled) when_cancelled();
  }
  int writable_calls = 0;
  int cancels = 0;
  std::function<void()> when_writable;
  std::function<void()> when_cancelled;

 private:
  std::vector<std::weak_ptr<ChunkStream>> streams_;
};

/// A cursor that stores the text it reads and passes it at once, unless `slow` is set.
class ReadingCursor : public Cursor {
 public:
  using Cursor::acknowledge;
  using Cursor::hold_until_acknowledged;
  using Cursor::pass;

  ReadingCursor(std::shared_ptr<ChunkStream> stream, Seq from) : Cursor(std::move(stream), from) {}

  void read_all() {
    if (stream() == nullptr) return;
    const Seq next = stream()->read(position(), [this](const Chunk& chunk) {
      text.append(chunk.escaped);
      ended = ended || chunk.kind == ChunkKind::end;
      return true;
    });
    pass(next);
  }

  std::string text;
  bool slow = false;
  bool ended = false;
  int told = 0;
  std::optional<Error> dropped;
  std::function<void()> when_told;
  std::function<void()> when_dropped;

 private:
  void on_chunks() override {
    ++told;
    if (!slow) read_all();
    if (when_told) when_told();
  }
  void on_dropped(const Error& error) override {
    dropped = error;
    if (when_dropped) when_dropped();
  }
};

/// Encodes a chunk as `[seq]text`, and the last one as `[seq]$`.
struct PlainEncoder final : ChunkEncoder {
  void encode(std::string& out, const ChunkStream& /*stream*/, const Chunk& chunk) const override {
    ++encoded;
    out.push_back('[');
    append_number(out, chunk.seq);
    out.push_back(']');
    out.append(chunk.kind == ChunkKind::end ? "$" : chunk.escaped);
  }
  mutable int encoded = 0;
};

/// Records the calls to a sink, and outlives the sink.
struct Written {
  std::string text;
  std::vector<std::size_t> blocks;
  std::vector<const char*> shared;  // addresses of the blocks that several readers share
  int finishes = 0;
  int drops = 0;
  Error drop_error;
  /// How many blocks the sink takes before write() returns false.
  std::size_t credit = 1U << 30U;
  std::function<void()> in_write;
  std::function<void()> in_finish;
  std::function<void()> in_drop;
};

class RecordingSink final : public BlockSink {
 public:
  explicit RecordingSink(std::shared_ptr<Written> written) : written_(std::move(written)) {}
  bool write(std::string_view block) override {
    // The callback below may destroy the sink.
    const std::shared_ptr<Written> written = written_;
    written->text.append(block);
    written->blocks.push_back(block.size());
    if (written->credit > 0) --written->credit;
    const bool more = written->credit > 0;
    if (written->in_write) written->in_write();
    return more;
  }
  bool write(const Bytes& block) override {
    written_->shared.push_back(block.view().data());
    return write(block.view());
  }
  void finish() override {
    const std::shared_ptr<Written> written = written_;
    ++written->finishes;
    if (written->in_finish) written->in_finish();
  }
  void drop(const Error& error) override {
    const std::shared_ptr<Written> written = written_;
    ++written->drops;
    written->drop_error = error;
    if (written->in_drop) written->in_drop();
  }

 private:
  std::shared_ptr<Written> written_;
};

/// The kept text of a stream from `from` on, as a polling reader sees it.
inline std::string kept_text(const ChunkStream& stream, Seq from) {
  std::string text;
  stream.read(from, [&](const Chunk& chunk) {
    text.append(chunk.escaped);
    return true;
  });
  return text;
}

/// Limits for one stream.
inline StreamBench::Setup small(std::size_t chunks, std::size_t bytes = 1 << 20,
                                std::size_t retained = 0) {
  StreamBench::Setup setup;
  setup.limits.max_chunks = chunks;
  setup.limits.max_bytes = bytes;
  setup.limits.retained_bytes = retained;
  setup.limits.stall = std::chrono::seconds(30);
  return setup;
}

/// Appends chunks until the stream is full.
inline int fill(ChunkStream& stream) {
  int appended = 1;
  while (stream.append(ChunkKind::text, "x")) ++appended;
  return appended;
}

}  // namespace sluice

#pragma once

#include <atomic>
#include <cstdint>

#include "core/executor.hpp"
#include "net/descriptor.hpp"
#include "net/descriptor_io.hpp"
#include "net/event_loop.hpp"
#include "net/line_session.hpp"

namespace sluice {

class LineConnection;

/// What the connections of one loop share: their memory, their timeouts and their figures. Belongs
/// to its loop; the figures can be read from any thread.
class LineWorker {
 public:
  LineWorker(EventLoop& event_loop, Duration tick, const Clock* clock, MemoryBudget* memory);
  ~LineWorker();
  LineWorker(const LineWorker&) = delete;
  LineWorker& operator=(const LineWorker&) = delete;

  /// Takes no more lines; connections end when all is answered.
  void drain();
  void drop_all();

  struct Counters {
    std::atomic<std::uint64_t> connections = 0;
    std::atomic<std::uint64_t> connections_total = 0;
    std::atomic<std::uint64_t> lines_total = 0;
    std::atomic<std::uint64_t> queued_bytes = 0;
    std::atomic<std::uint64_t> timeouts = 0;
    std::atomic<std::uint64_t> stalled = 0;

    /// One writer: a plain add is enough.
    static void add(std::atomic<std::uint64_t>& counter, std::uint64_t by) {
      counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
    }
  };

  EventLoop& loop;
  BufferPool buffers;
  Counters counters;

 private:
  friend class LineConnection;
  void add(LineConnection& connection);
  void remove(LineConnection& connection);
  void schedule_tick();
  void tick();
  [[nodiscard]] TimePoint now() const { return clock_->now(); }

  Duration tick_every_;
  const Clock* clock_;
  LineConnection* connections_ = nullptr;  // intrusive list, each with a reference
  Executor::TimerId tick_timer_ = 0;
  bool draining_ = false;
};

/// A connection of lines over descriptors: a socket, or one to read from and one to write to. What
/// epoll does not know (files, /dev/null) counts as always ready. Belongs to its worker's loop.
class LineConnection final : public LineSession, private EventLoop::TurnHook {
 public:
  /// `output` is empty if `input` is a socket for both. `ended`, if any, runs when all is over.
  LineConnection(LineWorker& worker, Descriptor input, Descriptor output,
                 const LineOptions& options, Executor::Task ended);

  void start(std::unique_ptr<LineHandler> handler);
  void flush() override;
  using LineSession::tear_down;

 private:
  friend class LineWorker;

  /// Tells the connection of one of its descriptors.
  class Side final : public EventLoop::Watcher {
   public:
    Side(LineConnection& connection, bool reads, bool writes)
        : connection_(&connection), reads_(reads), writes_(writes) {}
    void on_ready(std::uint32_t events) override { connection_->on_ready(events, reads_, writes_); }

   private:
    LineConnection* connection_;
    bool reads_;
    bool writes_;
  };

  void watch(const Descriptor& descriptor, Side& side);
  void on_ready(std::uint32_t events, bool reads, bool writes);
  void read_now();
  void peer_gone();
  void on_turn_end() override;
  void tick(TimePoint now);
  [[nodiscard]] bool is_stalled(TimePoint now);
  void drain();

  void output_changed() override { worker_->loop.at_turn_end(*this); }
  void input_wanted() override;
  void dropped() override;

  LineWorker* worker_;
  LineConnection* previous_ = nullptr;
  LineConnection* next_ = nullptr;
  Descriptor in_;
  Descriptor out_;
  DescriptorIo source_;
  DescriptorIo sink_;
  Side input_side_;
  Side output_side_;
  Executor::Task ended_;
  TimePoint line_at_;      // first byte of the line that has come in part
  TimePoint progress_at_;  // last byte that the peer took while there was something to send
  TimePoint ended_at_;     // the end of the input
  std::size_t unacknowledged_ = 0;  // in the kernel, when last looked at
  bool is_readable_ = true;
  bool writing_ = false;  // waiting for the descriptor to be writable
  bool resume_ = false;   // go on with the input at the end of the turn
};

}  // namespace sluice

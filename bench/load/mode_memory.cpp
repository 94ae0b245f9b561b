#include <memory>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

#include "chunk_track.hpp"
#include "http_reply.hpp"
#include "modes.hpp"
#include "requests.hpp"
#include "stream_source.hpp"

namespace sluice::bench {
namespace {

constexpr std::int64_t kOpenDeadlineNs = 60'000'000'000;
/// Between two chunks of an idle stream: the longest that the synthetic engine takes.
constexpr std::int64_t kIdleIntervalUs = 60'000'000;

/// Opens one stream and leaves it.
class IdleReader final : public StreamEvents {
 public:
  IdleReader(Loop& loop, Tally& tally, const Options& options)
      : loop_(loop), tally_(tally), source_(make_stream_source(loop, options, *this)) {
    loop.open(*source_);
  }
  void on_ready() override { source_->start(); }
  void on_started() override { ++tally_.units; }
  void on_chunk(std::string_view, std::int64_t) override {}
  void on_end() override { report_error(loop_, tally_, "an idle stream ended"); }
  void on_error(std::string_view what) override { report_error(loop_, tally_, what); }

 private:
  Loop& loop_;
  Tally& tally_;
  std::unique_ptr<StreamSource> source_;
};

/// Starts streams on one connection, one `run` after the other, and reads none of them.
class Starter final : public Connection {
 public:
  Starter(Loop& loop, Tally& tally, std::string_view request, std::size_t total)
      : Connection(loop), tally_(tally), request_(request), total_(total) {
    loop.open(*this);
  }
  void on_open() override { send(request_); }
  void on_bytes(std::string_view bytes, std::int64_t) override {
    reply_.feed(bytes, [&](std::string_view piece) { body_.append(piece); });
    if (!reply_.done() && !reply_.failed()) return;
    if (find_stream_id(body_).empty()) {
      report_error(loop(), tally_, "run: " + body_.substr(0, 200));
      loop().stop();
      return;
    }
    body_.clear();
    reply_.restart();
    if (++tally_.units < total_) {
      send(request_);
    } else {
      loop().stop();
    }
  }
  void on_closed(std::string_view why) override {
    report_error(loop(), tally_, why);
    loop().stop();
  }

 private:
  Tally& tally_;
  std::string_view request_;
  std::size_t total_;
  HttpReply reply_;
  std::string body_;
};

/// Lets the server settle, reports, and holds everything open if asked to.
std::uint64_t finish(Loop& loop, Tally& tally, const Options& options, MemoryReport& memory,
                     const CpuTimes& begin, std::int64_t started) {
  if (tally.units != options.connections) {
    tally.error("only " + std::to_string(tally.units) + " were opened");
  }
  loop.run_until(now_ns() + options.settle_ms * 1'000'000);
  memory.after = memory_of(options.server_pid);
  print_report(options, tally, static_cast<double>(now_ns() - started) / 1e9, begin,
               cpu_times(options.server_pid), &memory);
  if (options.hold) {
    char byte = 0;
    while (::read(STDIN_FILENO, &byte, 1) > 0) {
    }
  }
  return tally.errors;
}

void need_server(const Options& options) {
  if (options.server_pid == 0) throw std::runtime_error(options.mode + ": give --server-pid");
}

}  // namespace

std::uint64_t run_idle(const Options& given) {
  need_server(given);
  Options options = given;
  options.count = 1000;
  options.interval_us = kIdleIntervalUs;
  Loop loop(options);
  auto tally = std::make_unique<Tally>();
  MemoryReport memory{.before = memory_of(options.server_pid), .after = {}};
  const CpuTimes begin = cpu_times(options.server_pid);
  const std::int64_t started = now_ns();
  std::vector<std::unique_ptr<IdleReader>> readers;
  for (std::size_t i = 0; i < options.connections; ++i) {
    readers.push_back(std::make_unique<IdleReader>(loop, *tally, options));
  }
  while (tally->units < options.connections && tally->errors < kTooManyErrors &&
         now_ns() < started + kOpenDeadlineNs) {
    loop.run_until(now_ns() + 10'000'000);
  }
  return finish(loop, *tally, options, memory, begin, started);
}

std::uint64_t run_sessions(const Options& options) {
  need_server(options);
  Loop loop(options);
  auto tally = std::make_unique<Tally>();
  MemoryReport memory{.before = memory_of(options.server_pid), .after = {}};
  const CpuTimes begin = cpu_times(options.server_pid);
  const std::int64_t started = now_ns();
  const std::string request = post_request("/mcp", run_message(options.count, options.interval_us));
  Starter starter(loop, *tally, request, options.connections);
  loop.run_until(started + kOpenDeadlineNs);
  return finish(loop, *tally, options, memory, begin, started);
}

}  // namespace sluice::bench

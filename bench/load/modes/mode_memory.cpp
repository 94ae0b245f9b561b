#include <memory>
#include <string>
#include <vector>

#include "links/chunk_track.hpp"
#include "links/http_reply.hpp"
#include "links/requests.hpp"
#include "links/stream_source.hpp"
#include "modes/memory_run.hpp"
#include "modes/modes.hpp"

namespace sluice::bench {
namespace {

/// The time between two chunks of an idle stream: the longest that the synthetic engine accepts.
constexpr std::int64_t kIdleIntervalUs = 60'000'000;

/// Opens one stream and leaves it idle.
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

/// Starts streams on one connection, one `run` after another, and reads none of them.
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

}  // namespace

std::uint64_t run_idle(const Options& given) {
  Options options = given;
  options.count = 1000;
  options.interval_us = kIdleIntervalUs;
  MemoryRun run(options);
  std::vector<std::unique_ptr<IdleReader>> readers;
  for (std::size_t i = 0; i < options.connections; ++i) {
    readers.push_back(std::make_unique<IdleReader>(run.loop(), run.tally(), options));
  }
  run.open();
  return run.finish();
}

std::uint64_t run_sessions(const Options& options) {
  MemoryRun run(options);
  const std::string request = post_request("/mcp", run_message(options.count, options.interval_us));
  Starter starter(run.loop(), run.tally(), request, options.connections);
  run.open();
  return run.finish();
}

}  // namespace sluice::bench

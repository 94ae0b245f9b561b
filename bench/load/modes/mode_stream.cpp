#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "links/chunk_track.hpp"
#include "links/stream_source.hpp"
#include "modes/modes.hpp"

namespace sluice::bench {
namespace {

/// Reads one stream after another and checks that each is complete.
class StreamReader final : public StreamEvents {
 public:
  StreamReader(Loop& loop, Tally& tally, std::size_t index, const Options& options)
      : loop_(loop),
        tally_(tally),
        index_(index),
        count_(options.count),
        paced_(options.mode == "paced"),
        source_(make_stream_source(loop, options, *this)),
        track_(source_->label(), paced_ ? options.interval_us * 1000 : 0) {
    loop.open(*source_);
  }

  void on_ready() override {
    ready_ = true;
    if (!paced_ || released_) start();
  }
  void on_started() override {}
  void on_chunk(std::string_view text, std::int64_t now) override {
    ++tally_.units;
    ++tally_.by_connection[index_];
    tally_.bytes += text.size();
    progressed_ = true;
    if (!track_.take(text, now, tally_)) {
      report_error(loop_, tally_, "no number in " + std::string(text.substr(0, 200)));
    }
  }
  void on_end() override {
    if (track_.taken() != count_) {
      report_error(loop_, tally_,
                   "a stream of " + std::to_string(count_) + " chunks ended after " +
                       std::to_string(track_.taken()));
    }
    ++tally_.replies;
  }
  void on_error(std::string_view what) override { report_error(loop_, tally_, what); }

  /// Allows a paced reader to start its first stream.
  void release() {
    released_ = true;
    if (ready_) start();
  }
  [[nodiscard]] bool ready() const { return ready_; }
  /// Whether a chunk has arrived since the last call.
  bool take_progressed() { return std::exchange(progressed_, false); }

 private:
  void start() {
    track_.restart();
    source_->start();
  }

  Loop& loop_;
  Tally& tally_;
  std::size_t index_;
  std::int64_t count_;
  bool paced_;
  bool ready_ = false;
  bool released_ = false;
  bool progressed_ = false;
  std::unique_ptr<StreamSource> source_;
  ChunkTrack track_;
};

using Readers = std::vector<std::unique_ptr<StreamReader>>;

/// Opens all connections first, then starts the streams, spread over one interval or all at once.
void start_paced(Loop& loop, const Options& options, Readers& readers) {
  const std::int64_t deadline = now_ns() + 30'000'000'000;
  const auto all_ready = [&] {
    return std::ranges::all_of(readers, [](const auto& reader) { return reader->ready(); });
  };
  while (!all_ready()) {
    if (now_ns() > deadline) throw std::runtime_error("the connections did not open in 30 s");
    loop.run_until(now_ns() + 10'000'000);
  }
  const std::int64_t begin = now_ns() + 20'000'000;
  for (std::size_t i = 0; i < readers.size(); ++i) {
    const std::int64_t phase = options.stagger
                                   ? options.interval_us * 1000 * static_cast<std::int64_t>(i) /
                                         static_cast<std::int64_t>(readers.size())
                                   : 0;
    loop.at(begin + phase, [reader = readers[i].get()] { reader->release(); });
  }
}

}  // namespace

std::uint64_t run_streams(const Options& given) {
  Options options = given;
  if (options.mode == "paced") {
    if (options.interval_us <= 0) throw std::runtime_error("paced: give --interval-us above 0");
    // Enough chunks that no stream ends within the measured time.
    options.count = static_cast<std::int64_t>((options.warmup_s + options.seconds + 60) * 1e6) /
                    options.interval_us;
  }
  Loop loop(options);
  auto tally = std::make_unique<Tally>();
  tally->by_connection.resize(options.connections);
  Readers readers;
  for (std::size_t i = 0; i < options.connections; ++i) {
    readers.push_back(std::make_unique<StreamReader>(loop, *tally, i, options));
  }
  if (options.mode == "paced") start_paced(loop, options, readers);

  // Counts streams that stand still in the second half; otherwise they would only lower the rate.
  loop.at(now_ns() + static_cast<std::int64_t>((options.warmup_s + options.seconds / 2) * 1e9),
          [&] {
            for (const auto& reader : readers) reader->take_progressed();
          });
  measure(loop, *tally, options, [&] {
    for (const auto& reader : readers) tally->stalled += reader->take_progressed() ? 0U : 1U;
  });
  return tally->errors;
}

}  // namespace sluice::bench

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "links/chunk_track.hpp"
#include "links/http_reply.hpp"
#include "links/requests.hpp"
#include "modes/modes.hpp"

namespace sluice::bench {
namespace {

/// Starts a stream and polls it to its end, repeatedly.
class Poller final : public Connection {
 public:
  Poller(Loop& loop, Tally& tally, const Options& options)
      : Connection(loop),
        tally_(tally),
        count_(options.count),
        wait_ms_(options.wait_ms),
        max_chunks_(options.max_chunks),
        start_(post_request("/mcp", run_message(options.count, options.interval_us))) {}

  void on_open() override {
    opened_ = true;
    reply_.restart();
    start();
  }

  void on_bytes(std::string_view bytes, std::int64_t now) override {
    tally_.bytes += bytes.size();
    reply_.feed(bytes, [&](std::string_view piece) { body_.append(piece); });
    if (!reply_.done() && !reply_.failed()) return;
    if (reply_.failed() || reply_.status() != 200) {
      fail();
    } else if (id_.empty()) {
      id_ = find_stream_id(body_);
      if (id_.empty()) {
        fail();
      } else {
        poll();
      }
    } else {
      take_poll(now);
    }
  }

  void on_closed(std::string_view why) override {
    if (!opened_ || !id_.empty()) report_error(loop(), tally_, why);
    opened_ = false;
    loop().open(*this);
  }

 private:
  void start() {
    id_.clear();
    track_.restart();
    body_.clear();
    send(start_);
  }

  void poll() {
    body_.clear();
    reply_.restart();
    sent_at_ = now_ns();
    send(post_request("/mcp", poll_message(id_, track_.taken(), wait_ms_, max_chunks_)));
  }

  void take_poll(std::int64_t now) {
    const std::size_t chunks = track_.take_all(body_, now, tally_);
    if (chunks == 0 && body_.find(R"("has_more":)") == std::string::npos) {
      fail();
      return;
    }
    tally_.units += chunks;
    ++tally_.replies;
    tally_.round_trip.add(now - sent_at_);
    if (body_.find(R"("has_more":false)") == std::string::npos) {
      poll();
      return;
    }
    // The chunk that ends the stream has no text and is not one of the `count`.
    if (track_.taken() != count_ + 1) {
      report_error(loop(), tally_, "a stream ended after " + std::to_string(track_.taken()));
    }
    reply_.restart();
    start();
  }

  void fail() {
    report_error(loop(), tally_,
                 "poll: status " + std::to_string(reply_.status()) + ": " + body_.substr(0, 200));
    id_.clear();
    close();
    loop().open(*this);
  }

  Tally& tally_;
  std::int64_t count_;
  std::int64_t wait_ms_;
  std::int64_t max_chunks_;
  std::string start_;
  ChunkTrack track_{R"("seq":)", 0};
  HttpReply reply_;
  std::string id_;
  std::string body_;
  std::int64_t sent_at_ = 0;
  bool opened_ = false;
};

}  // namespace

std::uint64_t run_poll(const Options& options) {
  Loop loop(options);
  auto tally = std::make_unique<Tally>();
  std::vector<std::unique_ptr<Poller>> pollers;
  for (std::size_t i = 0; i < options.connections; ++i) {
    pollers.push_back(std::make_unique<Poller>(loop, *tally, options));
    loop.open(*pollers.back());
  }
  measure(loop, *tally, options);
  return tally->errors;
}

}  // namespace sluice::bench

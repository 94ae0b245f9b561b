#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "links/chunk_track.hpp"
#include "links/http_reply.hpp"
#include "links/requests.hpp"
#include "links/sse_splitter.hpp"
#include "modes/modes.hpp"

namespace sluice::bench {
namespace {

/// One of many readers of the same event stream. Calls `on_event` after each event.
class Subscriber final : public Connection {
 public:
  Subscriber(Loop& loop, Tally& tally, std::string path, std::function<void()> on_event)
      : Connection(loop), tally_(tally), path_(std::move(path)), on_event_(std::move(on_event)) {}

  void on_open() override { send(event_stream_request(path_)); }

  void on_bytes(std::string_view bytes, std::int64_t now) override {
    tally_.bytes += bytes.size();
    reply_.feed(bytes, [&](std::string_view piece) {
      splitter_.feed(piece, [&](std::string_view event) {
        if (!track_.take(event, now, tally_)) return;
        ++tally_.units;
        if (on_event_) on_event_();
      });
    });
    if (reply_.failed() || reply_.done() || (reply_.has_head() && reply_.status() != 200)) {
      report_error(loop(), tally_, "reader: status " + std::to_string(reply_.status()));
      close();
    }
  }

  void on_closed(std::string_view why) override { report_error(loop(), tally_, why); }

  [[nodiscard]] bool reading() const { return reply_.has_head() && reply_.status() == 200; }

 private:
  Tally& tally_;
  std::string path_;
  std::function<void()> on_event_;
  HttpReply reply_;
  SseSplitter splitter_;
  ChunkTrack track_{R"("seq":)", 0};
};

/// Sends one request after another and keeps the body of the last reply.
class Requester : public Connection {
 public:
  Requester(Loop& loop, Tally& tally) : Connection(loop), tally_(tally) {}

  void on_open() override {}
  void on_bytes(std::string_view bytes, std::int64_t) override {
    while (!bytes.empty()) {
      bytes.remove_prefix(reply_.feed(bytes, [&](std::string_view piece) { body_.append(piece); }));
      if (reply_.failed() || (reply_.done() && reply_.status() / 100 != 2)) {
        report_error(loop(), tally_, "status " + std::to_string(reply_.status()) + ": " + body_);
        close();
        return;
      }
      if (!reply_.done()) continue;
      last_body_ = std::exchange(body_, {});
      reply_.restart();
      --waiting_;
    }
  }
  void on_closed(std::string_view why) override { report_error(loop(), tally_, why); }

  void request(std::string_view bytes) {
    ++waiting_;
    send(bytes);
  }
  [[nodiscard]] std::size_t waiting() const { return waiting_; }
  [[nodiscard]] const std::string& last_body() const { return last_body_; }

 private:
  Tally& tally_;
  HttpReply reply_;
  std::string body_;
  std::string last_body_;
  std::size_t waiting_ = 0;
};

/// Publishes numbered messages as fast as the readers read them.
class Publisher final : public Requester {
 public:
  Publisher(Loop& loop, Tally& tally, const Options& options)
      : Requester(loop, tally),
        path_(options.publish_path),
        padding_(options.message_bytes, 'x'),
        readers_(options.connections),
        window_(options.publish_window) {}

  void begin() { publish(); }

  /// Records that a reader has read one message.
  void advance() {
    ++delivered_;
    publish();
  }

  void on_bytes(std::string_view bytes, std::int64_t now) override {
    Requester::on_bytes(bytes, now);
    publish();
  }

 private:
  void publish() {
    while (waiting() < window_ && published_ * readers_ < delivered_ + window_ * readers_) {
      std::string message = R"({"seq":)" + std::to_string(published_++) + R"(,"t_ns":)" +
                            std::to_string(now_ns()) + R"(,"padding":")";
      if (message.size() < padding_.size()) message.append(padding_, message.size());
      request(post_request(path_, message + "\"}"));
    }
  }

  std::string path_;
  std::string padding_;
  std::size_t readers_;
  std::size_t window_;
  std::uint64_t published_ = 0;
  std::uint64_t delivered_ = 0;
};

template <class Condition>
void wait_for(Loop& loop, const Tally& tally, const char* what, Condition&& condition) {
  const std::int64_t deadline = now_ns() + 30'000'000'000;
  while (!condition()) {
    if (tally.errors != 0) throw std::runtime_error(std::string(what) + ": " + tally.first_error);
    if (now_ns() > deadline) throw std::runtime_error(std::string(what) + ": not within 30 s");
    loop.run_until(now_ns() + 5'000'000);
  }
}

using Subscribers = std::vector<std::unique_ptr<Subscriber>>;

Subscribers subscribe(Loop& loop, Tally& tally, const Options& options, const std::string& path,
                      const std::function<void()>& on_event = {}) {
  Subscribers subscribers;
  for (std::size_t i = 0; i < options.connections; ++i) {
    subscribers.push_back(std::make_unique<Subscriber>(loop, tally, path, on_event));
    loop.open(*subscribers.back());
  }
  wait_for(loop, tally, "subscribing", [&] {
    return std::ranges::all_of(subscribers, [](const auto& s) { return s->reading(); });
  });
  return subscribers;
}

/// Measures readers of one of the server's own streams.
std::uint64_t run_stream_fanout(const Options& options) {
  Loop loop(options);
  auto tally = std::make_unique<Tally>();
  Requester starter(loop, *tally);
  loop.open(starter);
  wait_for(loop, *tally, "connecting", [&] { return starter.is_open(); });
  starter.request(post_request("/mcp", run_message(options.count, options.interval_us)));
  wait_for(loop, *tally, "starting the stream", [&] { return starter.waiting() == 0; });
  const std::string_view id = find_stream_id(starter.last_body());
  if (id.empty()) throw std::runtime_error("run: " + starter.last_body());
  const auto subscribers = subscribe(loop, *tally, options, "/streams/" + std::string(id));
  measure(loop, *tally, options);
  return tally->errors;
}

/// Measures readers of a message broker, with a publisher.
std::uint64_t run_broker_fanout(const Options& options) {
  Loop loop(options);
  auto tally = std::make_unique<Tally>();
  Publisher publisher(loop, *tally, options);
  loop.open(publisher);
  const auto subscribers =
      subscribe(loop, *tally, options, options.subscribe_path, [&] { publisher.advance(); });
  wait_for(loop, *tally, "connecting", [&] { return publisher.is_open(); });
  publisher.begin();
  measure(loop, *tally, options);
  return tally->errors;
}

}  // namespace

std::uint64_t run_fanout(const Options& options) {
  return options.subscribe_path.empty() ? run_stream_fanout(options) : run_broker_fanout(options);
}

}  // namespace sluice::bench

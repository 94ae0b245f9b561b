// Random interleavings of everything that can happen to a stream, from fixed seeds. In any order, a
// reader gets exactly the appended text, in order and without gaps, or a clear error. The limits
// hold, and nothing is left at the end.

#include <algorithm>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "stream/stream_error.hpp"
#include "stream/stream_test_support.hpp"

namespace sluice {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Encodes chunks as `seq:length:text;`, which a reader can check against what was appended.
struct CheckedEncoder final : ChunkEncoder {
  void encode(std::string& out, const ChunkStream& /*stream*/, const Chunk& chunk) const override {
    append_number(out, chunk.seq);
    out.push_back(':');
    append_number(out, chunk.escaped.size());
    out.push_back(':');
    out.append(chunk.kind == ChunkKind::end ? "$" : chunk.escaped);
    out.push_back(';');
  }
};

/// Decodes blocks and compares each chunk with the model.
struct Reader {
  const std::vector<std::string>* model = nullptr;
  Seq next = 0;
  bool ended = false;

  void take(Seq seq, std::string_view text, bool end) {
    ASSERT_EQ(seq, next);
    ASSERT_FALSE(ended);
    if (end) {
      ASSERT_EQ(seq, model->size());
    } else {
      ASSERT_LT(seq, model->size());
      ASSERT_EQ(text, (*model)[seq]);
    }
    ended = end;
    ++next;
  }

  void take_block(std::string_view block) {
    while (!block.empty()) {
      const std::size_t colon = block.find(':');
      const std::size_t second = block.find(':', colon + 1);
      const Seq seq = std::stoull(std::string(block.substr(0, colon)));
      const std::size_t length =
          std::stoull(std::string(block.substr(colon + 1, second - colon - 1)));
      const bool end = block[second + 1] == '$';
      const std::size_t taken = end ? 1 : length;
      take(seq, block.substr(second + 1, taken), end);
      ASSERT_EQ(block[second + 1 + taken], ';');
      block.remove_prefix(second + 2 + taken);
    }
  }
};

class World {
 public:
  World(unsigned seed, const StreamBench::Setup& setup)
      : random_(seed), setup_(setup), bench_(setup) {}

  ~World() { producer_.when_writable = nullptr; }

  void run(int steps) {
    stream_ = bench_.start({.principal = "alice", .expects_poller = below(2) == 0});
    poller_.model = &model_;
    producer_.drive(stream_);
    producer_.when_writable = [this] {
      waiting_ = false;
      if (below(2) == 0) produce(below(20));
    };
    for (int i = 0; i < steps; ++i) {
      step();
      if (testing::Test::HasFatalFailure()) return;
      check_limits();
    }
    settle_down();
  }

 private:
  struct Push {
    Reader reader;
    std::unique_ptr<PushCursor> cursor;
    std::size_t credit = 0;  // blocks it takes until it is full
    std::size_t window = 0;
    Seq acknowledged = 0;
    bool finished = false;
    bool dropped = false;
  };

  class Sink final : public BlockSink {
   public:
    explicit Sink(Push& push) : push_(&push) {}
    bool write(std::string_view block) override {
      push_->reader.take_block(block);
      if (push_->credit > 0) --push_->credit;
      return push_->credit > 0;
    }
    bool write(const Bytes& block) override { return write(block.view()); }
    void finish() override {
      EXPECT_EQ(push_->reader.next, push_->reader.model->size() + 1);
      EXPECT_FALSE(push_->finished);
      push_->finished = true;
    }
    void drop(const Error& error) override {
      EXPECT_FALSE(push_->finished);
      EXPECT_TRUE(error.code == kStreamInvalidState || error.code == kStreamExpired);
      EXPECT_FALSE(error.message.empty());
      push_->dropped = true;
    }

   private:
    Push* push_;
  };

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

  void produce(std::size_t count) {
    for (std::size_t i = 0; i < count && !waiting_ && !stream_->ended(); ++i) {
      std::string text(below(8) == 0 ? below(400) : below(12), static_cast<char>('a' + below(26)));
      const Seq before = stream_->next();
      const bool more = stream_->append(ChunkKind::text, text);
      // Without memory for the chunk, the stream ends instead of keeping it.
      if (stream_->ended()) {
        ASSERT_EQ(stream_->error().code, kLimitReached);
        return;
      }
      ASSERT_EQ(stream_->next(), before + 1);
      model_.push_back(std::move(text));
      waiting_ = !more;
      if (below(10) == 0) stream_->flush();
    }
  }

  void attach() {
    if (pushes_.size() >= 6) return;
    const Seq from =
        stream_->first() + below(static_cast<std::size_t>(stream_->next() - stream_->first()) + 1);
    ASSERT_TRUE(stream_->check_position(from));
    auto push = std::make_unique<Push>();
    push->reader = {.model = &model_, .next = from};
    push->window = below(3) == 0 ? 1 + below(10) : 0;
    push->acknowledged = from;
    PushCursor::Options options;
    options.from = from;
    options.window = push->window;
    push->cursor =
        std::make_unique<PushCursor>(stream_, encoder_, std::make_unique<Sink>(*push), options);
    pushes_.push_back(std::move(push));
  }

  void resume(Push& push) {
    push.credit = 1 + below(4);
    push.cursor->resume();
  }

  void acknowledge(Push& push) {
    if (push.window == 0 || push.dropped) return;
    push.acknowledged +=
        below(static_cast<std::size_t>(push.cursor->position() - push.acknowledged) + 1);
    ASSERT_TRUE(push.cursor->acknowledge(push.acknowledged));
    ASSERT_FALSE(push.cursor->acknowledge(push.cursor->position() + 1));
  }

  void poll() {
    const Seq from = below(4) == 0 ? poll_base_ : poller_.next;
    if (const Result<void> valid = stream_->check_position(from); !valid) {
      // The reader stalled, or another reader came first. The error names the position to continue
      // from.
      ASSERT_EQ(valid.error().code, kStreamInvalidState);
      ASSERT_LT(from, stream_->first());
      ASSERT_NE(valid.error().data.find("oldest_seq"), std::string::npos);
      poller_ = {.model = &model_, .next = stream_->first()};
      poll_base_ = poller_.next;
      return;
    }
    stream_->poll_from(from);
    ASSERT_EQ(stream_->check_position(from).has_value(), true);
    Reader reader{.model = &model_, .next = from};
    const std::size_t limit = 1 + below(30);
    std::size_t taken = 0;
    stream_->read(from, [&](const Chunk& chunk) {
      if (taken++ >= limit) return false;
      reader.take(chunk.seq, chunk.escaped, chunk.kind == ChunkKind::end);
      return true;
    });
    poll_base_ = from;
    // Sometimes the reply is lost in transit.
    if (below(5) != 0) poller_ = reader;
  }

  void step() {
    switch (below(12)) {
      case 0:
      case 1:
      case 2:
        produce(below(30));
        break;
      case 3:
        attach();
        break;
      case 4:
        if (!pushes_.empty() && below(4) == 0) {
          pushes_.erase(pushes_.begin() + static_cast<std::ptrdiff_t>(below(pushes_.size())));
        }
        break;
      case 5:
      case 6:
        if (!pushes_.empty()) resume(*pushes_[below(pushes_.size())]);
        break;
      case 7:
        if (!pushes_.empty()) acknowledge(*pushes_[below(pushes_.size())]);
        break;
      case 8:
        if (below(3) == 0) poll();
        break;
      case 9:
        bench_.executor.run();
        break;
      case 10:
        bench_.executor.advance(below(200) == 0 ? Duration(seconds(20)) : milliseconds(below(100)));
        break;
      default:
        // Another stream takes memory for some time.
        if (below(20) == 0) {
          other_ = bench_.start();
          if (other_ != nullptr) other_->append(ChunkKind::text, std::string(below(4000), 'o'));
        } else if (other_ != nullptr && below(5) == 0) {
          bench_.streams->discard(*other_);
          other_ = nullptr;
        }
    }
  }

  void check_limits() {
    // The producer obeys append(), so at most the chunk that filled the stream exceeds the limit.
    // The end always fits.
    const std::size_t end = stream_->ended() ? 1 : 0;
    ASSERT_LE(stream_->next() - stream_->first(), setup_.limits.max_chunks + end);
    ASSERT_LT(stream_->bytes(), setup_.limits.max_bytes + 400);
    // Only the chunk that ends a stream may exceed the budget.
    ASSERT_LE(bench_.policy.budget.used(),
              setup_.memory + bench_.streams->counters().ended.load() * 64);
    ASSERT_EQ(stream_->next(), model_.size() + end);
  }

  void everyone_reads() {
    for (const auto& push : pushes_) {
      push->credit = 1000;
      push->cursor->resume();
      if (push->window == 0) continue;
      push->acknowledged = push->cursor->position();
      ASSERT_TRUE(push->cursor->acknowledge(push->acknowledged));
    }
    poll();
    bench_.executor.advance(milliseconds(60));
  }

  /// With a window of one chunk, reading takes as many rounds as there are chunks. Lost replies
  /// take a few more.
  void read_out() {
    const std::size_t rounds = static_cast<std::size_t>(stream_->next() - stream_->first()) + 100;
    for (std::size_t round = 0; round < rounds; ++round) everyone_reads();
  }

  /// All readers continue, so everything must arrive.
  void settle_down() {
    other_ = nullptr;
    for (const auto& stream : bench_.streams->streams_of("alice", 1000)) {
      if (stream != stream_) bench_.streams->discard(*stream);
    }
    std::erase_if(pushes_, [](const auto& push) { return push->dropped; });
    // The poller stops, and cursors read the rest.
    attach();
    for (int round = 0; round < 100; ++round) {
      produce(5);
      everyone_reads();
      ASSERT_FALSE(testing::Test::HasFatalFailure());
    }
    // No more chunks are produced. A poller is one poll behind, or more if replies are lost. Once
    // everything has been read, the producer must not be left waiting.
    producer_.when_writable = [this] { waiting_ = false; };
    read_out();
    if (!stream_->ended()) {
      EXPECT_FALSE(waiting_) << "everything has been read, but the producer still waits";
      EXPECT_FALSE(stream_->paused());
      const std::size_t before = model_.size();
      produce(1);
      EXPECT_EQ(model_.size(), before + 1);
      stream_->finish();
    }
    read_out();
    EXPECT_EQ(poller_.next, model_.size() + 1);
    for (const auto& push : pushes_) {
      EXPECT_FALSE(push->dropped);
      EXPECT_TRUE(push->finished);
      EXPECT_EQ(push->reader.next, model_.size() + 1);
    }
    pushes_.clear();
    stream_ = nullptr;
    bench_.executor.advance(std::chrono::minutes(11));
    EXPECT_EQ(bench_.policy.budget.used(), 0U);
    EXPECT_EQ(bench_.streams->counters().open, 0U);
    EXPECT_EQ(bench_.streams->counters().active, 0U);
    EXPECT_EQ(bench_.executor.timers(), 0U);
  }

  std::mt19937 random_;
  StreamBench::Setup setup_;
  StreamBench bench_;
  CheckedEncoder encoder_;
  CountingProducer producer_;
  std::shared_ptr<ChunkStream> stream_;
  std::shared_ptr<ChunkStream> other_;
  std::vector<std::string> model_;
  std::vector<std::unique_ptr<Push>> pushes_;
  Reader poller_;
  Seq poll_base_ = 0;
  bool waiting_ = false;
};

class StreamProperty : public testing::TestWithParam<unsigned> {};

TEST_P(StreamProperty, EveryReaderGetsTheTextInOrderOrAClearError) {
  const unsigned seed = GetParam();
  StreamBench::Setup setup;
  static constexpr std::size_t kChunks[] = {1, 2, 3, 5, 16, 64, 1000};
  static constexpr std::size_t kBytes[] = {1, 100, 1000, 10000};
  static constexpr std::size_t kRetained[] = {0, 50, 100000};
  setup.limits.max_chunks = kChunks[seed % 7];
  setup.limits.max_bytes = kBytes[seed % 4];
  setup.limits.retained_bytes = kRetained[seed % 3];
  setup.limits.stall = seconds(30);
  setup.memory = seed % 5 == 0 ? 6000 : 1 << 20;
  World(seed, setup).run(600);
}

INSTANTIATE_TEST_SUITE_P(Seeds, StreamProperty, testing::Range(1U, 421U));

}  // namespace
}  // namespace sluice

#include "server/streams/remote_subscription.hpp"

#include <deque>
#include <utility>

#include "stream/push_cursor.hpp"

namespace sluice {
namespace {

/// Bytes that may be on their way to the reader's loop or wait there for its sink. A connection may
/// read many streams, so this is about one block.
constexpr std::size_t kCredit = PushCursor::kBlockBytes;
/// Up to this many of those bytes are not charged to the share of the stream's client.
constexpr std::size_t kUncharged = std::size_t{4} << 10U;

class SourceEnd;

/// The reader's side, on the reader's loop: owns the sink, returns credit for what the sink took.
class ReaderEnd final : public std::enable_shared_from_this<ReaderEnd> {
 public:
  ReaderEnd(std::unique_ptr<BlockSink> sink, Executor& source_loop, Executor& own_loop)
      : sink_(std::move(sink)), source_loop_(&source_loop), own_loop_(&own_loop) {}

  void connect(std::weak_ptr<SourceEnd> source) { source_ = std::move(source); }
  void deliver(Bytes block, bool sealed) {
    waiting_.push_back({std::move(block), sealed});
    write_waiting();
  }
  void finish() {
    end_ = [this] { sink_->finish(); };
    write_waiting();
  }
  void drop(const Error& error) {
    end_ = [this, error] { sink_->drop(error); };
    write_waiting();
  }
  void resume() {
    if (!std::exchange(opened_, true)) {
      open_source();
    } else if (writing_) {
      resumed_ = true;
    } else if (std::exchange(blocked_, false)) {
      write_waiting();
    }
  }
  void acknowledge(Seq seq, Subscription::Answer answer);
  void close();

  Executor& own_loop() { return *own_loop_; }

 private:
  /// A block on its way. `sealed`: readers share it, and it has its transport's final form.
  struct Waiting {
    Bytes block;
    bool sealed;
  };

  void open_source();
  /// Writes what waits while the sink accepts it. As its last action it may destroy the sink.
  void write_waiting();
  void return_credit();

  std::unique_ptr<BlockSink> sink_;
  std::weak_ptr<SourceEnd> source_;
  Executor* source_loop_;
  Executor* own_loop_;
  std::deque<Waiting> waiting_;  // at most kCredit bytes and one block
  Executor::Task end_;           // what follows them, once the source has sent the last
  std::size_t owed_ = 0;
  bool blocked_ = false;
  bool opened_ = false;
  bool writing_ = false;  // a call of the sink is on the stack
  bool resumed_ = false;  // within that call
};

/// The stream's side, on the stream's loop: owns the cursor.
class SourceEnd final {
 public:
  SourceEnd(std::shared_ptr<ChunkStream> stream, const RemoteSubscriptionRequest& request, Seq from,
            const std::shared_ptr<ReaderEnd>& reader)
      : share_(stream->memory_share()),
        cursor_(std::move(stream), *request.encoder, std::make_unique<Sink>(*this, reader),
                options(request, from)) {}

  void resume() { cursor_.resume(); }
  void credit(std::size_t bytes) {
    const bool was_full = in_flight_ >= kCredit;
    in_flight_ -= bytes;
    if (was_full && in_flight_ < kCredit) cursor_.resume();
  }
  Result<void> acknowledge(Seq seq) { return cursor_.acknowledge(seq); }

 private:
  class Sink final : public BlockSink {
   public:
    Sink(SourceEnd& end, std::shared_ptr<ReaderEnd> reader)
        : end_(&end), reader_(std::move(reader)) {}
    bool write(std::string_view block) override {
      return post(Bytes(std::string(block), charge(block.size())), false);
    }
    bool write(const Bytes& block) override { return post(block, true); }
    void finish() override {
      reader_->own_loop().post([reader = reader_] { reader->finish(); });
    }
    void drop(const Error& error) override {
      reader_->own_loop().post([reader = reader_, error] { reader->drop(error); });
    }

   private:
    /// A block of a client that has no memory left is sent all the same, because the cursor has
    /// passed it. The next one waits for credit.
    std::shared_ptr<MemoryHold> charge(std::size_t bytes) {
      if (end_->in_flight_ + bytes <= kUncharged) return nullptr;
      auto hold = std::make_shared<MemoryHold>(end_->share_);
      return hold->add(bytes) ? hold : nullptr;
    }
    bool post(Bytes block, bool sealed) {
      end_->in_flight_ += block.size();
      reader_->own_loop().post([reader = reader_, block = std::move(block), sealed]() mutable {
        reader->deliver(std::move(block), sealed);
      });
      return end_->in_flight_ < kCredit;
    }

    SourceEnd* end_;
    std::shared_ptr<ReaderEnd> reader_;
  };

  static PushCursor::Options options(const RemoteSubscriptionRequest& request, Seq from) {
    PushCursor::Options chosen;
    chosen.from = from;
    chosen.window = request.window;
    chosen.shareable = request.shareable;
    return chosen;
  }

  std::size_t in_flight_ = 0;
  std::shared_ptr<MemoryShare> share_;
  PushCursor cursor_;
};

/// Keeps the SourceEnd alive until the reader's loop releases it. It is destroyed on its own loop.
using SourceBox = std::shared_ptr<std::shared_ptr<SourceEnd>>;

void ReaderEnd::open_source() {
  source_loop_->post([source = source_] {
    if (const auto end = source.lock()) end->resume();
  });
}

void ReaderEnd::write_waiting() {
  if (writing_) return;
  const std::shared_ptr<ReaderEnd> keep = shared_from_this();  // the sink may end the subscription
  while (sink_ != nullptr && !waiting_.empty() && !blocked_) {
    const Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    owed_ += next.block.size();
    writing_ = true;
    blocked_ = !(next.sealed ? sink_->write(next.block) : sink_->write(next.block.view()));
    writing_ = false;
    if (std::exchange(resumed_, false)) blocked_ = false;
  }
  if (sink_ == nullptr || !waiting_.empty()) return;
  if (!blocked_ && owed_ > 0) return_credit();
  if (Executor::Task end = std::exchange(end_, {})) end();
}

void ReaderEnd::return_credit() {
  source_loop_->post([source = source_, bytes = std::exchange(owed_, 0)] {
    if (const auto end = source.lock()) end->credit(bytes);
  });
}

void ReaderEnd::acknowledge(Seq seq, Subscription::Answer answer) {
  source_loop_->post(
      [source = source_, seq, own = own_loop_, answer = std::move(answer)]() mutable {
        Result<void> result;
        if (const auto end = source.lock()) result = end->acknowledge(seq);
        own->post([answer = std::move(answer), result = std::move(result)]() mutable {
          answer(std::move(result));
        });
      });
}

void ReaderEnd::close() {
  sink_ = nullptr;
  waiting_.clear();
  end_ = {};
}

class RemoteSubscription final : public Subscription {
 public:
  RemoteSubscription(std::shared_ptr<ReaderEnd> reader, SourceBox box, Executor& source_loop,
                     bool is_over)
      : Subscription(is_over),
        reader_(std::move(reader)),
        box_(std::move(box)),
        source_loop_(&source_loop) {}
  ~RemoteSubscription() override {
    reader_->close();
    source_loop_->post([box = std::move(box_)] { box->reset(); });
  }
  void resume() override { reader_->resume(); }
  void acknowledge(Seq seq, Answer answer) override {
    reader_->acknowledge(seq, std::move(answer));
  }

 private:
  std::shared_ptr<ReaderEnd> reader_;
  SourceBox box_;
  Executor* source_loop_;
};

}  // namespace

void subscribe_remote(RemoteSubscriptionRequest request, StreamShard shard, Executor& here,
                      std::unique_ptr<BlockSink> sink, StreamService::Subscribed answer) {
  auto reader = std::make_shared<ReaderEnd>(std::move(sink), *shard.executor, here);
  shard.executor->post([request = std::move(request), shard, &here, reader = std::move(reader),
                        answer = std::move(answer)]() mutable {
    Result<std::shared_ptr<ChunkStream>> stream =
        shard.streams->find(request.stream_id, request.principal);
    const Result<Seq> from =
        stream ? begin_reading(**stream, request.from) : std::unexpected(stream.error());
    auto box = std::make_shared<std::shared_ptr<SourceEnd>>();
    bool is_over = false;
    if (from) {
      is_over = is_over_at(**stream, *from);
      *box = std::make_shared<SourceEnd>(std::move(*stream), request, *from, reader);
    }
    std::weak_ptr<SourceEnd> source = *box;
    here.post([reader = std::move(reader), box = std::move(box), source = std::move(source),
               loop = shard.executor, is_over, from, answer = std::move(answer)]() mutable {
      if (!from) {
        answer(std::unexpected(from.error()));
        return;
      }
      reader->connect(std::move(source));
      answer(
          std::make_unique<RemoteSubscription>(std::move(reader), std::move(box), *loop, is_over));
    });
  });
}

}  // namespace sluice

#include "stream/stream.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "json/json.hpp"
#include "stream/stream_error.hpp"
#include "stream/stream_manager.hpp"

namespace sluice {
namespace {

std::size_t three_quarters(std::size_t limit) {
  return limit / 4 * 3 + limit % 4 * 3 / 4;
}

}  // namespace

std::string_view to_string(StreamState state) {
  switch (state) {
    case StreamState::initializing:
      return "initializing";
    case StreamState::active:
      return "active";
    case StreamState::finished:
      return "finished";
    case StreamState::failed:
      return "failed";
  }
  return "failed";
}

ChunkStream::ChunkStream(Options options, StreamManager& manager)
    : manager_(&manager),
      id_(options.id),
      poller_(options.expects_poller ? Poller::expected : Poller::none),
      priority_(static_cast<std::int8_t>(options.priority)),
      is_private_(options.is_private),
      log_(std::move(options.share)),
      principal_(std::move(options.principal)),
      unit_(std::move(options.unit)),
      method_(options.method),
      last_access_(manager.executor().clock().now()) {}

ChunkStream::~ChunkStream() {
  while (cursors_ != nullptr) cursors_->detach();
}

bool ChunkStream::append(ChunkKind kind, std::string_view text) {
  if (ended()) return false;
  if (keep(kind, text)) return !paused_;
  const std::shared_ptr<ChunkStream> alive = shared_from_this();
  abandon({kLimitReached,
           "Your streams hold as much memory as they may; read or abort some, or "
           "raise streams.max_total_bytes"});
  return false;
}

bool ChunkStream::offer(ChunkKind kind, std::string_view text) {
  return !ended() && !paused_ && keep(kind, text);
}

bool ChunkStream::keep(ChunkKind kind, std::string_view text) {
  if (state_ == StreamState::initializing) state_ = StreamState::active;
  std::string_view escaped = text;
  if (kind != ChunkKind::message && kind != ChunkKind::tool_call) {
    std::string& scratch = manager_->scratch();
    append_json_escaped(scratch, text);
    escaped = scratch;
  }
  if (!log_.append(kind, escaped)) {
    log_.release_below(hold());
    manager_->reclaim(ChunkLog::memory_for(escaped.size()), log_.share());
    if (!log_.append(kind, escaped)) return false;
  }
  manager_->count_chunk();
  mark_dirty();
  if (full() || log_.share().is_short()) {
    make_room();
    if (full() || log_.share().is_short()) pause();
  }
  return true;
}

void ChunkStream::flush() {
  if (dirty_) notify_cursors();
}

void ChunkStream::finish(std::string trailer) {
  end(StreamState::finished, std::move(trailer));
}

void ChunkStream::fail(const Error& error, std::string trailer) {
  if (ended()) return;
  std::string members = R"("error":)";
  append_json_error(members, error);
  if (!trailer.empty()) members.append(",").append(trailer);
  end(StreamState::failed, std::move(members), error);
}

void ChunkStream::discard() {
  if (listed_) manager_->discard(*this);
}

void ChunkStream::end(StreamState state, std::string trailer, Error error) {
  if (ended()) return;
  // First all that there may be no memory for.
  auto ending = std::make_unique<Ending>(std::move(trailer), std::move(error));
  queue();
  log_.append_end();
  ending_ = std::move(ending);
  state_ = state;
  producer_ = nullptr;
  paused_ = false;
  manager_->executor().cancel(std::exchange(stall_timer_, 0));
  manager_->on_ended(*this);
  mark_dirty();
}

void ChunkStream::abandon(const Error& error) {
  StreamProducer* const producer = producer_;
  fail(error);
  if (producer != nullptr && !std::exchange(cancelled_, true)) producer->on_cancel();
}

void ChunkStream::poll_from(Seq seq) {
  if (!listed_) return;
  const bool is_new = std::exchange(poller_, Poller::active) != Poller::active;
  if (seq > absent_at_) {
    poller_moved_ = true;
    manager_->count_read();
  }
  if (is_new || seq > absent_at_) absent_at_ = std::min(seq, next());
  release_confirmed(next());
}

void ChunkStream::acknowledge(Seq seq) {
  if (!listed_) return;
  touch();
  if (seq > absent_at_) {
    absent_at_ = std::min(seq, next());
    poller_moved_ = true;
    manager_->count_read();
  }
  release_confirmed(seq);
}

void ChunkStream::release_confirmed(Seq below) {
  manager_->place(*this);
  // If a reader was disconnected, keep what it may return for, within the retained bytes.
  if (!interrupted_) log_.release_below(std::min(below, hold()));
  if (paused_ || log_.bytes() > retained_bytes()) queue();
}

Result<void> ChunkStream::check_position(Seq from) const {
  if (!listed_) {
    return std::unexpected(Error{kStreamExpired, "Stream session expired: the stream is gone"});
  }
  if (from >= first() && from <= next()) return {};
  std::string data = R"({"oldest_seq":)";
  append_number(data, first());
  data.append(R"(,"next_seq":)");
  append_number(data, next());
  data.push_back('}');
  if (from < first()) {
    return std::unexpected(Error{kStreamInvalidState,
                                 "Gap: chunk " + std::to_string(from) +
                                     " is no longer kept; the oldest kept seq is " +
                                     std::to_string(first()),
                                 std::move(data)});
  }
  return std::unexpected(Error{kStreamInvalidState,
                               "seq " + std::to_string(from) +
                                   " is ahead of the stream; its next seq is " +
                                   std::to_string(next()),
                               std::move(data)});
}

void ChunkStream::dismiss_readers() {
  const std::shared_ptr<ChunkStream> keep = shared_from_this();
  while (cursors_ != nullptr) {
    Cursor* const cursor = cursors_;
    cursor->expect_return();
    cursor->detach();
    cursor->on_dismissed();
  }
}

bool ChunkStream::cancel() {
  if (producer_ == nullptr || std::exchange(cancelled_, true)) return false;
  producer_->on_cancel();
  return true;
}

Bytes ChunkStream::encoded(const ChunkEncoder& encoder, Seq from, std::size_t max_bytes,
                           Seq& next_seq) {
  if (shared_ == nullptr) shared_ = std::make_unique<SharedBlock>();
  if (shared_->encoder != &encoder || shared_->from != from || shared_->bytes.empty()) {
    std::string text;
    shared_->next = encode(text, encoder, from, next(), max_bytes);
    encoder.seal(text);
    auto hold = std::make_shared<MemoryHold>(log_.share_handle());
    if (!hold->add(text.capacity())) return {};
    shared_->bytes = Bytes(std::move(text), std::move(hold));
    shared_->encoder = &encoder;
    shared_->from = from;
  }
  // Outside a round of notifications nothing else would release the shared block.
  if (!telling_) queue();
  next_seq = shared_->next;
  return shared_->bytes;
}

Seq ChunkStream::encode(std::string& out, const ChunkEncoder& encoder, Seq from, Seq limit,
                        std::size_t max_bytes) const {
  const std::size_t start = out.size();
  return log_.read(from, [&](const Chunk& chunk) {
    if (chunk.seq >= limit || out.size() - start >= max_bytes) return false;
    encoder.encode(out, *this, chunk);
    return true;
  });
}

Executor& ChunkStream::executor() const {
  return manager_->executor();
}

const std::string& ChunkStream::trailer() const {
  static const std::string none;
  return ending_ == nullptr ? none : ending_->trailer;
}

void ChunkStream::note_delivered() {
  poller_done_ = true;
  mark_delivered();
}

void ChunkStream::mark_delivered() {
  if (!std::exchange(delivered_, true)) --manager_->counters().unread;
  manager_->place(*this);
}

bool ChunkStream::has_several_readers() const {
  return cursors_ != nullptr && cursors_->next_ != nullptr;
}

std::string& ChunkStream::block_scratch() {
  return manager_->block_scratch();
}

void ChunkStream::mark_dirty() {
  if (shared_ != nullptr) shared_->bytes = Bytes();
  dirty_ = true;
  queue();
}

void ChunkStream::queue() {
  if (!listed_ || queued_) return;
  manager_->schedule_flush(shared_from_this());
  queued_ = true;
}

class ChunkStream::Round {
 public:
  /// `readers` are the cursors to notify; those that are destroyed meanwhile are set to null. It is
  /// null if there is only one cursor.
  Round(ChunkStream& stream, std::vector<Cursor*>* readers)
      : stream_(stream), readers_(readers), outer_(std::exchange(stream.manager_->rounds_, this)) {
    stream_.telling_ = true;
  }
  ~Round() {
    stream_.telling_ = false;
    stream_.manager_->rounds_ = outer_;
  }
  Round(const Round&) = delete;
  Round& operator=(const Round&) = delete;

  static void leave(const ChunkStream& stream, const Cursor& reader) {
    for (Round* round = stream.manager_->rounds_; round != nullptr; round = round->outer_) {
      if (&round->stream_ != &stream || round->readers_ == nullptr) continue;
      std::ranges::replace(*round->readers_, &reader, nullptr);
    }
  }

 private:
  ChunkStream& stream_;
  std::vector<Cursor*>* readers_;
  Round* outer_;
};

std::size_t ChunkStream::notify_cursors() {
  if (telling_) return 0;
  dirty_ = false;
  if (cursors_ == nullptr) return 0;
  std::size_t told = 1;
  // The manager keeps a queued stream alive until it flushes it.
  const std::shared_ptr<ChunkStream> keep = queued_ ? nullptr : shared_from_this();
  if (cursors_->next_ == nullptr) {
    const Round round(*this, nullptr);
    cursors_->on_chunks();
  } else {
    // Cursors may come and go during a notification. Walk a copy, in which detach() sets its own
    // entry to null.
    std::vector<Cursor*> walk;
    walk.swap(manager_->cursor_walk());
    for (Cursor* cursor = cursors_; cursor != nullptr; cursor = cursor->next_) {
      walk.push_back(cursor);
    }
    told = walk.size();
    {
      const Round round(*this, &walk);
      for (std::size_t i = 0; i < walk.size(); ++i) {
        if (walk[i] != nullptr) walk[i]->on_chunks();
      }
    }
    walk.clear();
    walk.swap(manager_->cursor_walk());
  }
  queue();
  return told;
}

void ChunkStream::settle() {
  // Later readers have no use for the block that was encoded for the readers of this turn.
  shared_.reset();
  if (!listed_) return;
  make_room();
  if (!paused_) return;
  if (!roomy()) {
    manager_->on_paused(*this);
    return;
  }
  paused_ = false;
  manager_->executor().cancel(std::exchange(stall_timer_, 0));
  if (producer_ != nullptr) producer_->on_writable();
}

Seq ChunkStream::hold() const {
  Seq lowest = next();
  if (poller_ != Poller::none || cursors_ == nullptr) lowest = absent_at_;
  for (const Cursor* cursor = cursors_; cursor != nullptr; cursor = cursor->next_) {
    lowest = std::min(lowest, cursor->held());
  }
  return lowest;
}

std::size_t ChunkStream::retained_bytes() const {
  const StreamLimits& limits = manager_->limits();
  return std::min(limits.retained_bytes, limits.max_bytes / 2);
}

bool ChunkStream::full() const {
  const StreamLimits& limits = manager_->limits();
  return log_.size() >= limits.max_chunks || log_.bytes() >= limits.max_bytes;
}

bool ChunkStream::roomy() const {
  const StreamLimits& limits = manager_->limits();
  return log_.size() <= three_quarters(limits.max_chunks) &&
         log_.bytes() <= three_quarters(limits.max_bytes) && !log_.share().is_short();
}

void ChunkStream::make_room() {
  std::size_t bytes = log_.bytes();
  std::size_t chunks = log_.size();
  const std::size_t keep_bytes = retained_bytes();
  const std::size_t keep_chunks = manager_->limits().max_chunks / 2;
  const bool keep_any = !log_.share().is_short();
  if (keep_any && bytes <= keep_bytes && chunks <= keep_chunks) return;
  const Seq passed = hold();
  if (!keep_any) {
    log_.release_below(passed);
    return;
  }
  log_.release_below(log_.read(first(), [&](const Chunk& chunk) {
    if (chunk.seq >= passed || (bytes <= keep_bytes && chunks <= keep_chunks)) return false;
    // Keep the last chunk with text, however long it is: a reader may have been disconnected in the
    // middle of it.
    if (ended() && chunk.seq + 2 >= next()) return false;
    bytes -= chunk.escaped.size();
    --chunks;
    return true;
  }));
}

void ChunkStream::pause() {
  if (std::exchange(paused_, true)) return;
  ++manager_->counters().pauses;
  arm_stall_timer();
  manager_->on_paused(*this);
}

void ChunkStream::arm_stall_timer() {
  poller_moved_ = false;
  for (Cursor* cursor = cursors_; cursor != nullptr; cursor = cursor->next_) {
    cursor->moved_ = false;
  }
  stall_timer_ = manager_->executor().schedule_at(
      manager_->executor().clock().now() + manager_->limits().stall, [weak = weak_from_this()] {
        if (const auto stream = weak.lock()) stream->on_stall();
      });
}

void ChunkStream::on_stall() {
  stall_timer_ = 0;
  if (!paused_ || ended()) return;
  const std::shared_ptr<ChunkStream> keep = shared_from_this();
  const Error error{kStreamInvalidState,
                    "The reader stalled: it held up a full stream for longer than stall-limit; "
                    "read faster or raise stall-limit"};
  bool dropped = false;
  while (is_read()) {
    const Seq lowest = hold();
    // A reader that has passed everything is not to blame: the stream waits for memory that others
    // hold.
    if (lowest == next() || drop_stalled(lowest, error) == 0) break;
    if (ended()) return;
    dropped = true;
    if (poller_ == Poller::none) absent_at_ = lowest;
    manager_->place(*this);
    make_room();
    if (roomy()) break;
  }
  // Without readers, a stream waits for one until it expires. But if the last one has stalled, the
  // producer stops. The kept chunks stay readable.
  if (dropped && producer_ != nullptr && !is_read()) {
    abandon(error);
    return;
  }
  arm_stall_timer();
  queue();
}

std::size_t ChunkStream::drop_stalled(Seq lowest, const Error& error) {
  std::size_t dropped = 0;
  if (poller_ != Poller::none && absent_at_ == lowest && !poller_moved_) {
    poller_ = Poller::none;
    ++dropped;
  }
  // Dropping one cursor may destroy others, which sets their entries in the list to null.
  std::vector<Cursor*> stalled;
  for (Cursor* cursor = cursors_; cursor != nullptr; cursor = cursor->next_) {
    if (cursor->held() == lowest && !cursor->moved_) stalled.push_back(cursor);
  }
  {
    const Round round(*this, &stalled);
    for (std::size_t i = 0; i < stalled.size(); ++i) {
      Cursor* const cursor = stalled[i];
      if (cursor == nullptr) continue;
      ++dropped;
      cursor->detach();
      cursor->on_dropped(error);
    }
  }
  manager_->counters().stalled_readers += dropped;
  return dropped;
}

bool ChunkStream::evictable() const {
  return delivered_ && cursors_ == nullptr && (poller_ != Poller::active || poller_done_);
}

void ChunkStream::touch() {
  if (!listed_) return;
  last_access_ = manager_->executor().clock().now();
  manager_->on_access(*this);
}

Cursor::Cursor(std::shared_ptr<ChunkStream> stream, Seq from)
    : position_(from), acknowledged_(from) {
  if (!stream->listed_) return;
  stream_ = std::move(stream);
  next_ = std::exchange(stream_->cursors_, this);
  link_ = &stream_->cursors_;
  if (next_ != nullptr) next_->link_ = &next_;
  if (stream_->poller_ == ChunkStream::Poller::expected)
    stream_->poller_ = ChunkStream::Poller::none;
  stream_->manager_->place(*stream_);
  stream_->touch();
}

Cursor::~Cursor() {
  detach();
}

void Cursor::detach() {
  const std::shared_ptr<ChunkStream> stream = std::exchange(stream_, nullptr);
  if (stream == nullptr) return;
  *link_ = next_;
  if (next_ != nullptr) next_->link_ = link_;
  next_ = nullptr;
  if (stream->telling_) ChunkStream::Round::leave(*stream, *this);
  if (!stream->listed_) return;
  if (stream->cursors_ == nullptr) {
    if (stream->poller_ == ChunkStream::Poller::none) stream->absent_at_ = held();
    stream->manager_->place(*stream);
    if (stream->producer_ != nullptr) stream->producer_->on_unread();
  }
  stream->touch();
  if (stream->paused_) stream->queue();
}

void Cursor::pass(Seq position) {
  if (position > position_) {
    stream_->manager_->count_read();
    if (!holds_acknowledged_) moved_ = true;
  }
  position_ = position;
  if (stream_->ended() && position >= stream_->next()) stream_->mark_delivered();
  stream_->manager_->place(*stream_);
  // During a round of notifications this is not necessary: settle() runs after it anyway.
  if (!stream_->telling_ &&
      (stream_->paused_ || stream_->log_.bytes() > stream_->retained_bytes())) {
    stream_->queue();
  }
}

void Cursor::acknowledge(Seq seq) {
  if (seq > acknowledged_) {
    acknowledged_ = seq;
    if (holds_acknowledged_) moved_ = true;
    stream_->manager_->count_read();
  }
  stream_->touch();
  if (!stream_->interrupted_) {
    stream_->log_.release_below(std::min(acknowledged_, stream_->hold()));
  }
  stream_->manager_->place(*stream_);
  if (stream_->paused_ || stream_->log_.bytes() > stream_->retained_bytes()) stream_->queue();
}

void Cursor::on_dismissed() {
  on_dropped({kStreamInvalidState, "Another reader has taken this one's place", {}});
}

void Cursor::expect_return() {
  if (stream_ != nullptr) stream_->interrupted_ = true;
}

}  // namespace sluice

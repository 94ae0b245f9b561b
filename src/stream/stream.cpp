#include "stream/stream.hpp"

#include <algorithm>
#include <new>
#include <utility>

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
           "Your streams have used all the memory that one client may have; read or abort some, or "
           "raise streams.max_total_bytes"});
  return false;
}

bool ChunkStream::offer(ChunkKind kind, std::string_view text) {
  if (ended() || paused_) return false;
  if (keep(kind, text)) return true;
  pause();
  manager_->await_memory(*this);
  return false;
}

bool ChunkStream::keep(ChunkKind kind, std::string_view text) {
  if (state_ == StreamState::initializing) state_ = StreamState::active;
  std::string_view escaped = text;
  if (kind == ChunkKind::text || kind == ChunkKind::reasoning) {
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
  if (!dirty_ || telling_) return;
  if (crowd_ == nullptr) {
    notify_cursors(0, 0);
  } else if (const TurnWork& work = manager_->work();
             crowd_->untold == nullptr && work.has_left() && work.is_idle()) {
    // What is left of this round, or of one before, has its turn already.
    manager_->tell(*this);
  }
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
  if (crowd_ == nullptr) crowd_ = std::make_unique<Crowd>();
  SharedBlock& shared = crowd_->block;
  if (shared.encoder != &encoder || shared.from != from || shared.bytes.empty()) {
    std::string text;
    const Seq reached = encode(text, encoder, from, next(), max_bytes);
    encoder.seal(text);
    auto hold = std::make_shared<MemoryHold>(log_.share_handle());
    if (!hold->add(text.capacity())) return {};
    // Assigned together, because the block before stays if there is no memory for this one.
    shared = {&encoder, from, reached, Bytes(std::move(text), std::move(hold))};
  }
  // Outside a round of notifications nothing else would release the shared block.
  if (!telling_) queue();
  next_seq = shared.next;
  return shared.bytes;
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
  if (crowd_ != nullptr) crowd_->block.bytes = Bytes();
  dirty_ = true;
  queue();
}

void ChunkStream::queue() noexcept {
  if (!listed_ || queued_) return;
  try {
    manager_->schedule_flush(shared_from_this());
    queued_ = true;
  } catch (const std::bad_alloc&) {
    manager_->catch_up_later();
  }
}

void ChunkStream::catch_up() noexcept {
  if (paused_ && !ended()) {
    if (stall_timer_ == 0) arm_stall_timer();
    manager_->await_memory(*this);
  }
  if (paused_ || has_news()) queue();
}

class ChunkStream::Telling {
 public:
  explicit Telling(ChunkStream& stream) : stream_(stream) { stream_.telling_ = true; }
  ~Telling() { stream_.telling_ = false; }
  Telling(const Telling&) = delete;
  Telling& operator=(const Telling&) = delete;

 private:
  ChunkStream& stream_;
};

std::size_t ChunkStream::notify_cursors(std::size_t budget, std::size_t cost) {
  if (telling_) return 0;
  std::size_t taken = 0;
  // The manager keeps a queued stream alive until it flushes it.
  const std::shared_ptr<ChunkStream> keep = queued_ ? nullptr : shared_from_this();
  {
    const Telling telling(*this);
    if (crowd_ == nullptr) {
      dirty_ = false;
      if (cursors_ == nullptr) return 0;
      taken = cost;
      cursors_->on_chunks();
    } else {
      if (crowd_->untold == nullptr) {
        dirty_ = false;
        crowd_->untold = cursors_;
      }
      // Readers that come meanwhile are before those that are untold.
      while (crowd_->untold != nullptr && (taken == 0 || taken < budget)) {
        Cursor* const cursor = crowd_->untold;
        crowd_->untold = cursor->next_;
        taken += cost;
        cursor->on_chunks();
      }
    }
  }
  queue();
  return taken;
}

void ChunkStream::settle() {
  // Later readers have no use for the block that was encoded for the readers of this turn.
  if (cursors_ == nullptr) {
    crowd_.reset();
  } else if (crowd_ != nullptr) {
    crowd_->block = {};
  }
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
  if (cursors_ != nullptr) lowest = std::min(lowest, held_by_readers());
  return lowest;
}

Seq ChunkStream::held_by_readers() const {
  if (crowd_ == nullptr) return cursors_->held();
  // Readers are often many at the same place, so it is not looked for each time that one moves.
  if (crowd_->at_lowest == 0) {
    crowd_->lowest = cursors_->held();
    for (const Cursor* cursor = cursors_; cursor != nullptr; cursor = cursor->next_) {
      crowd_->add(cursor->held());
    }
  }
  return crowd_->lowest;
}

void ChunkStream::on_hold(Seq seq) {
  if (crowd_ != nullptr && crowd_->at_lowest > 0) crowd_->add(seq);
}

void ChunkStream::on_release(Seq seq) {
  if (crowd_ != nullptr && crowd_->at_lowest > 0 && crowd_->lowest == seq) --crowd_->at_lowest;
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

void ChunkStream::arm_stall_timer() noexcept {
  poller_moved_ = false;
  for (Cursor* cursor = cursors_; cursor != nullptr; cursor = cursor->next_) {
    cursor->moved_ = false;
  }
  try {
    stall_timer_ = manager_->executor().schedule_at(
        manager_->executor().clock().now() + manager_->limits().stall, [weak = weak_from_this()] {
          if (const auto stream = weak.lock()) stream->on_stall();
        });
  } catch (const std::bad_alloc&) {
    manager_->catch_up_later();
  }
}

void ChunkStream::on_stall() {
  stall_timer_ = 0;
  if (!paused_ || ended()) return;
  const std::shared_ptr<ChunkStream> keep = shared_from_this();
  try {
    if (drop_all_stalled()) return;
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch)
    // Those that are left are dropped the next time.
  }
  arm_stall_timer();
  queue();
}

bool ChunkStream::drop_all_stalled() {
  const Error error{kStreamInvalidState,
                    "The reader stalled: it held up a full stream for longer than stall-limit; "
                    "read faster or raise stall-limit"};
  while (is_read()) {
    const Seq lowest = hold();
    // A reader that has passed everything is not to blame: the stream waits for memory that others
    // hold.
    if (lowest == next() || drop_stalled(lowest, error) == 0) break;
    if (ended()) return true;
    if (poller_ == Poller::none) absent_at_ = lowest;
    manager_->place(*this);
    make_room();
    if (roomy()) break;
  }
  // Without readers, a stream waits for one until it expires. But if the last one has stalled, the
  // producer stops. The kept chunks stay readable.
  if (has_dropped_ && producer_ != nullptr && !is_read()) {
    abandon(error);
    return true;
  }
  has_dropped_ = false;
  return false;
}

std::size_t ChunkStream::drop_stalled(Seq lowest, const Error& error) {
  std::size_t dropped = 0;
  if (poller_ != Poller::none && absent_at_ == lowest && !poller_moved_) {
    poller_ = Poller::none;
    has_dropped_ = true;
    ++dropped;
  }
  if (crowd_ == nullptr) crowd_ = std::make_unique<Crowd>();
  {
    const Telling telling(*this);
    // Dropping one cursor may destroy others.
    for (Cursor* cursor = cursors_; cursor != nullptr; cursor = crowd_->unchecked) {
      crowd_->unchecked = cursor->next_;
      if (cursor->held() != lowest || cursor->moved_) continue;
      has_dropped_ = true;
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
  if (stream->cursors_ != nullptr && stream->crowd_ == nullptr) {
    stream->crowd_ = std::make_unique<ChunkStream::Crowd>();
  }
  stream_ = std::move(stream);
  stream_->on_hold(from);
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
  if (ChunkStream::Crowd* const crowd = stream->crowd_.get()) {
    if (crowd->untold == this) crowd->untold = next_;
    if (crowd->unchecked == this) crowd->unchecked = next_;
    stream->on_release(held());
  }
  next_ = nullptr;
  if (!stream->listed_) return;
  if (stream->cursors_ == nullptr) {
    if (!stream->telling_) stream->crowd_.reset();
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
    if (!holds_acknowledged_) {
      moved_ = true;
      stream_->on_release(position_);
    }
    position_ = position;
  }
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
    if (holds_acknowledged_) {
      moved_ = true;
      stream_->on_release(acknowledged_);
    }
    acknowledged_ = seq;
    stream_->manager_->count_read();
  }
  stream_->touch();
  if (!stream_->interrupted_) {
    stream_->log_.release_below(std::min(acknowledged_, stream_->hold()));
  }
  stream_->manager_->place(*stream_);
  if (stream_->paused_ || stream_->log_.bytes() > stream_->retained_bytes()) stream_->queue();
}

void Cursor::hold_until_acknowledged() {
  if (stream_ != nullptr) stream_->on_release(held());
  holds_acknowledged_ = true;
  if (stream_ != nullptr) stream_->on_hold(held());
}

void Cursor::on_dismissed() {
  on_dropped({kStreamInvalidState, "Another reader has taken this one's place", {}});
}

void Cursor::expect_return() {
  if (stream_ != nullptr) stream_->interrupted_ = true;
}

}  // namespace sluice

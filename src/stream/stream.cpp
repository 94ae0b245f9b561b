#include "stream/stream.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/json.hpp"
#include "stream/stream_error.hpp"
#include "stream/stream_manager.hpp"

namespace sluice {

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

Stream::Stream(Options options, StreamManager& manager)
    : manager_(&manager),
      poller_(options.expects_poller ? Poller::expected : Poller::none),
      priority_(static_cast<std::int8_t>(options.priority)),
      log_(manager.budget()),
      principal_(std::move(options.principal)),
      method_(std::move(options.method)),
      last_access_(manager.executor().clock().now()) {
  options.id.resize(kIdLength, '0');
  std::ranges::copy(options.id, id_.begin());
}

Stream::~Stream() {
  while (cursors_ != nullptr) cursors_->detach();
}

bool Stream::append(ChunkKind kind, std::string_view text) {
  if (ended()) return false;
  if (state_ == StreamState::initializing) state_ = StreamState::active;
  std::string& escaped = manager_->scratch();
  escaped.clear();
  append_json_escaped(escaped, text);
  if (!log_.append(kind, escaped)) {
    manager_->reclaim(escaped.size(), this);
    if (!log_.append(kind, escaped)) {
      abandon({.code = kStreamLimit,
               .message = "The memory for all streams is used up; read or abort some, or raise "
                          "stream-memory"});
      return false;
    }
  }
  ++manager_->counters().chunks;
  mark_dirty();
  if (!full() && !manager_->short_of_memory()) return true;
  make_room();
  if (!full() && !manager_->short_of_memory()) return true;
  pause();
  return false;
}

void Stream::flush() {
  if (dirty_) notify_cursors();
}

void Stream::finish(std::string trailer) {
  end(StreamState::finished, std::move(trailer));
}

void Stream::fail(const Error& error, std::string trailer) {
  if (ended()) return;
  error_ = std::make_unique<Error>(error);
  std::string members = R"("error":{"code":)";
  append_number(members, error.code);
  members.append(R"(,"message":)");
  append_json_string(members, error.message);
  if (!error.data.empty()) members.append(R"(,"data":)").append(error.data);
  members.push_back('}');
  if (!trailer.empty()) members.append(",").append(trailer);
  end(StreamState::failed, std::move(members));
}

void Stream::end(StreamState state, std::string trailer) {
  if (ended()) return;
  log_.append_end();
  state_ = state;
  trailer_ = std::move(trailer);
  producer_ = nullptr;
  paused_ = false;
  manager_->executor().cancel(std::exchange(stall_timer_, 0));
  manager_->on_ended(*this);
  mark_dirty();
}

void Stream::abandon(const Error& error) {
  StreamProducer* const producer = producer_;
  fail(error);
  if (producer != nullptr && !std::exchange(cancelled_, true)) producer->on_cancel();
}

void Stream::poll_from(Seq seq) {
  touch();
  poller_ = Poller::active;
  poller_at_ = std::max(poller_at_, seq);
  departed_at_ = poller_at_;
  log_.release_below(std::min(poller_at_, hold()));
  make_room();
}

Result<void> Stream::check_position(Seq from) const {
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
                               "from_seq " + std::to_string(from) +
                                   " is ahead of the stream; its next seq is " +
                                   std::to_string(next()),
                               std::move(data)});
}

bool Stream::cancel() {
  if (producer_ == nullptr || std::exchange(cancelled_, true)) return false;
  producer_->on_cancel();
  return true;
}

Bytes Stream::encoded(const ChunkEncoder& encoder, Seq from, std::size_t max_bytes, Seq& next_seq) {
  if (shared_ == nullptr) shared_ = std::make_unique<SharedBlock>();
  if (shared_->encoder != &encoder || shared_->from != from || shared_->bytes.empty()) {
    std::string text;
    shared_->next = encode(text, encoder, from, next(), max_bytes);
    encoder.seal(text);
    shared_->bytes = Bytes(std::move(text));
    shared_->encoder = &encoder;
    shared_->from = from;
  }
  next_seq = shared_->next;
  return shared_->bytes;
}

Seq Stream::encode(std::string& out, const ChunkEncoder& encoder, Seq from, Seq limit,
                   std::size_t max_bytes) const {
  const std::size_t start = out.size();
  return log_.read(from, [&](const Chunk& chunk) {
    if (chunk.seq >= limit || out.size() - start >= max_bytes) return false;
    encoder.encode(out, *this, chunk);
    return true;
  });
}

Executor& Stream::executor() const {
  return manager_->executor();
}

void Stream::note_delivered() {
  if (!std::exchange(delivered_, true)) --manager_->counters().unread;
}

bool Stream::has_several_readers() const {
  return cursors_ != nullptr && cursors_->next_ != nullptr;
}

std::string& Stream::block_scratch() {
  return manager_->block_scratch();
}

void Stream::mark_dirty() {
  if (shared_ != nullptr) shared_->bytes = Bytes();
  dirty_ = true;
  if (!std::exchange(queued_, true)) manager_->schedule_flush(shared_from_this());
}

void Stream::notify_cursors() {
  dirty_ = false;
  if (cursors_ == nullptr || telling_) return;
  const std::shared_ptr<Stream> keep = shared_from_this();
  telling_ = true;
  if (cursors_->next_ == nullptr) {
    cursors_->on_chunks();
  } else {
    // Cursors may come and go while one is told: walk a copy, in which detach() blanks its own.
    std::vector<Cursor*> walk;
    walk.swap(manager_->cursor_walk());
    for (Cursor* cursor = cursors_; cursor != nullptr; cursor = cursor->next_) {
      walk.push_back(cursor);
    }
    walk_ = &walk;
    for (std::size_t i = 0; i < walk.size(); ++i) {
      if (walk[i] != nullptr) walk[i]->on_chunks();
    }
    walk_ = nullptr;
    walk.clear();
    walk.swap(manager_->cursor_walk());
  }
  telling_ = false;
  // What was encoded for these readers is of no use to later ones.
  shared_.reset();
  make_room();
}

Seq Stream::hold() const {
  Seq lowest = next();
  if (poller_ != Poller::none) {
    lowest = poller_at_;
  } else if (cursors_ == nullptr) {
    lowest = departed_at_;
  }
  for (const Cursor* cursor = cursors_; cursor != nullptr; cursor = cursor->next_) {
    lowest = std::min(lowest, cursor->held());
  }
  return lowest;
}

bool Stream::full() const {
  const StreamLimits& limits = manager_->limits();
  return log_.size() >= limits.max_chunks || log_.bytes() >= limits.max_bytes;
}

bool Stream::roomy() const {
  const StreamLimits& limits = manager_->limits();
  return log_.size() <= limits.max_chunks / 4 * 3 && log_.bytes() <= limits.max_bytes / 4 * 3 &&
         !manager_->short_of_memory();
}

void Stream::make_room() {
  const StreamLimits& limits = manager_->limits();
  const std::size_t retained = std::min(limits.retained_bytes, limits.max_bytes / 2);
  if (log_.bytes() > retained || log_.size() >= limits.max_chunks || paused_) {
    const Seq passed = hold();
    Seq keep_from = passed;
    // Passed chunks go from the oldest on until what is left fits; all of them if space is short.
    if (log_.size() < limits.max_chunks && !manager_->short_of_memory()) {
      std::size_t excess = log_.bytes() > retained ? log_.bytes() - retained : 0;
      keep_from = log_.read(first(), [&](const Chunk& chunk) {
        if (chunk.seq >= passed || excess == 0) return false;
        excess -= std::min(excess, chunk.escaped.size());
        return true;
      });
    }
    log_.release_below(std::min(keep_from, passed));
  }
  if (paused_ && roomy()) wake_producer();
}

void Stream::pause() {
  if (std::exchange(paused_, true)) return;
  ++manager_->counters().pauses;
  stall_timer_ = manager_->executor().schedule_at(
      manager_->executor().clock().now() + manager_->limits().stall, [weak = weak_from_this()] {
        if (const auto stream = weak.lock()) stream->on_stall();
      });
  manager_->on_paused(*this);
}

void Stream::wake_producer() {
  paused_ = false;
  manager_->executor().cancel(std::exchange(stall_timer_, 0));
  if (producer_ != nullptr) producer_->on_room();
}

void Stream::on_stall() {
  stall_timer_ = 0;
  if (!paused_ || ended()) return;
  const std::shared_ptr<Stream> keep = shared_from_this();
  const Error error{kStreamInvalidState,
                    "The reader stalled: it held up a full stream for longer than stall-limit"};
  ++manager_->counters().stalled_readers;
  const Seq stalled_at = hold();
  if (poller_ != Poller::none && poller_at_ == stalled_at) poller_ = Poller::none;
  std::vector<Cursor*> stalled;
  for (Cursor* cursor = cursors_; cursor != nullptr; cursor = cursor->next_) {
    if (cursor->held() == stalled_at) stalled.push_back(cursor);
  }
  for (Cursor* cursor : stalled) {
    cursor->detach();
    cursor->on_dropped(error);
  }
  if (cursors_ == nullptr && poller_ == Poller::none) {
    // Nobody is left to read it: what is kept stays readable, the producer stops.
    departed_at_ = stalled_at;
    abandon(error);
    return;
  }
  make_room();
  if (paused_) {
    paused_ = false;
    pause();
  }
}

void Stream::touch() {
  last_access_ = manager_->executor().clock().now();
  manager_->on_access(*this);
}

Cursor::Cursor(std::shared_ptr<Stream> stream, Seq from)
    : stream_(std::move(stream)), position_(from), acknowledged_(from) {
  next_ = std::exchange(stream_->cursors_, this);
  if (stream_->poller_ == Stream::Poller::expected) stream_->poller_ = Stream::Poller::none;
  stream_->touch();
}

Cursor::~Cursor() {
  detach();
}

void Cursor::detach() {
  if (stream_ == nullptr) return;
  const std::shared_ptr<Stream> stream = std::move(stream_);
  stream_ = nullptr;
  Cursor** link = &stream->cursors_;
  while (*link != this) link = &(*link)->next_;
  *link = next_;
  next_ = nullptr;
  if (stream->walk_ != nullptr) {
    for (Cursor*& walked : *stream->walk_) {
      if (walked == this) walked = nullptr;
    }
  }
  if (stream->cursors_ == nullptr) stream->departed_at_ = held();
  stream->touch();
  if (stream->paused_ && !stream->telling_) stream->make_room();
}

void Cursor::pass(Seq position) {
  position_ = position;
  if (stream_->ended() && position >= stream_->next()) stream_->note_delivered();
  // Within a round of readers the stream makes room once, at its end.
  if (stream_->paused_ && !stream_->telling_) stream_->make_room();
}

void Cursor::acknowledge(Seq seq) {
  acknowledged_ = std::max(acknowledged_, seq);
  stream_->touch();
  stream_->log_.release_below(std::min(acknowledged_, stream_->hold()));
  stream_->make_room();
}

}  // namespace sluice

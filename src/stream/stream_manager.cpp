#include "stream/stream_manager.hpp"

#include <algorithm>
#include <utility>

#include "core/random.hpp"
#include "stream/stream_error.hpp"

namespace sluice {
namespace {

constexpr Duration kSweepInterval = std::chrono::seconds(1);
constexpr Duration kMemoryRetry = std::chrono::milliseconds(50);

}  // namespace

bool StreamQuota::try_acquire(const std::string& principal) {
  const std::lock_guard lock(mutex_);
  std::size_t& count = in_use_[principal];
  if (count >= per_client_) return false;
  ++count;
  return true;
}

void StreamQuota::release(const std::string& principal) {
  const std::lock_guard lock(mutex_);
  const auto found = in_use_.find(principal);
  if (found != in_use_.end() && --found->second == 0) in_use_.erase(found);
}

StreamManager::StreamManager(Executor& executor, StreamPolicy& policy, std::size_t loop,
                             std::size_t loops)
    : executor_(&executor), policy_(&policy), loop_(loop), loops_(loops) {}

StreamManager::~StreamManager() {
  *alive_ = false;
  executor_->cancel(sweep_timer_);
  executor_->cancel(retry_timer_);
  to_flush_.clear();
  while (oldest_ != nullptr) remove(*oldest_);
}

std::size_t StreamManager::loop_of(std::string_view id, std::size_t loops) {
  std::uint64_t hash = 0xCBF29CE484222325U;  // FNV-1a
  for (const char c : id) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  return static_cast<std::size_t>((hash >> 32U) % loops);
}

Result<std::shared_ptr<Stream>> StreamManager::start(StartOptions options) {
  if (store_.size() >= policy_->max_streams) {
    for (Stream* stream = oldest_; stream != nullptr; stream = stream->newer_) {
      if (stream->delivered() && stream->cursors_ == nullptr) {
        store_.bury(*stream, executor_->clock().now() + limits().tombstone);
        remove(*stream);
        break;
      }
    }
    if (store_.size() >= policy_->max_streams) {
      return fail(kStreamLimit, "The server holds as many streams as it may (max-streams, " +
                                    std::to_string(policy_->max_streams) +
                                    " a loop); read or abort some");
    }
  }
  if (!policy_->quota.try_acquire(options.principal)) {
    return fail(kStreamLimit, "You have " + std::to_string(policy_->quota.limit()) +
                                  " streams under way, the most one client may "
                                  "(streams-per-client); read or abort some");
  }
  std::string id;
  do {
    id = random_id(Stream::kIdLength);
  } while (loop_of(id, loops_) != loop_ || store_.contains(id));
  auto stream = std::make_shared<Stream>(
      Stream::Options{.id = std::move(id),
                      .principal = std::move(options.principal),
                      .method = std::move(options.method),
                      .priority = std::clamp(options.priority, kMinPriority, kMaxPriority),
                      .expects_poller = options.expects_poller},
      *this);
  store_.insert(stream);
  stream->listed_ = true;
  on_access(*stream);
  ++counters_.started;
  ++counters_.active;
  ++counters_.open;
  if (sweep_timer_ == 0) {
    sweep_timer_ = executor_->schedule_at(executor_->clock().now() + kSweepInterval, [this] {
      sweep_timer_ = 0;
      sweep();
    });
  }
  return stream;
}

Result<std::shared_ptr<Stream>> StreamManager::find(std::string_view id,
                                                    std::string_view principal) {
  StreamStore::Found found = store_.find(id, principal);
  switch (found.presence) {
    case StreamStore::Presence::present:
      return std::move(found.stream);
    case StreamStore::Presence::expired:
      return fail(kStreamExpired,
                  "Stream session expired: it was not read for the expiry time; start it again");
    case StreamStore::Presence::absent:
      break;
  }
  return fail(kStreamNotFound, "Stream session not found: no stream of yours has this stream_id");
}

void StreamManager::discard(Stream& stream) {
  remove(stream);
}

std::vector<std::shared_ptr<Stream>> StreamManager::streams_of(std::string_view principal) const {
  std::vector<std::shared_ptr<Stream>> result;
  for (Stream* stream = oldest_; stream != nullptr; stream = stream->newer_) {
    if (stream->principal() == principal) result.push_back(stream->shared_from_this());
  }
  return result;
}

void StreamManager::end_all(const Error& error) {
  std::vector<std::shared_ptr<Stream>> active;
  for (Stream* stream = oldest_; stream != nullptr; stream = stream->newer_) {
    if (!stream->ended()) active.push_back(stream->shared_from_this());
  }
  for (const auto& stream : active) stream->abandon(error);
}

void StreamManager::schedule_flush(std::shared_ptr<Stream> stream) {
  to_flush_.push_back(std::move(stream));
  if (std::exchange(flush_posted_, true)) return;
  executor_->post([this, alive = alive_] {
    if (*alive) flush();
  });
}

void StreamManager::flush() {
  flush_posted_ = false;
  std::vector<std::shared_ptr<Stream>> turn;
  turn.swap(to_flush_);
  const auto before = [](const auto& a, const auto& b) { return a->priority() > b->priority(); };
  if (!std::ranges::is_sorted(turn, before)) std::ranges::sort(turn, before);
  for (const std::shared_ptr<Stream>& stream : turn) {
    stream->queued_ = false;
    if (stream->dirty_) stream->notify_cursors();
  }
  if (to_flush_.empty()) {
    turn.clear();
    to_flush_.swap(turn);
  }
}

void StreamManager::on_access(Stream& stream) {
  if (newest_ == &stream || !stream.listed_) return;
  unlink(stream);
  stream.older_ = newest_;
  if (newest_ != nullptr) newest_->newer_ = &stream;
  newest_ = &stream;
  if (oldest_ == nullptr) oldest_ = &stream;
}

void StreamManager::unlink(Stream& stream) {
  if (stream.older_ != nullptr) stream.older_->newer_ = stream.newer_;
  if (stream.newer_ != nullptr) stream.newer_->older_ = stream.older_;
  if (oldest_ == &stream) oldest_ = stream.newer_;
  if (newest_ == &stream) newest_ = stream.older_;
  stream.older_ = nullptr;
  stream.newer_ = nullptr;
}

void StreamManager::on_ended(Stream& stream) {
  policy_->quota.release(stream.principal());
  ++counters_.ended;
  --counters_.active;
  ++counters_.unread;
}

void StreamManager::on_paused(Stream& stream) {
  if (!short_of_memory()) return;
  short_streams_.push_back(stream.weak_from_this());
  if (retry_timer_ != 0) return;
  retry_timer_ = executor_->schedule_at(executor_->clock().now() + kMemoryRetry, [this] {
    retry_timer_ = 0;
    retry_paused();
  });
}

void StreamManager::retry_paused() {
  std::vector<std::weak_ptr<Stream>> waiting;
  waiting.swap(short_streams_);
  if (short_of_memory()) reclaim(policy_->budget.limit() / 8, nullptr);
  std::vector<std::shared_ptr<Stream>> streams;
  for (const auto& weak : waiting) {
    if (auto stream = weak.lock()) streams.push_back(std::move(stream));
  }
  std::ranges::sort(streams,
                    [](const auto& a, const auto& b) { return a->priority() > b->priority(); });
  for (const auto& stream : streams) {
    if (!stream->paused_ || stream->ended()) continue;
    stream->make_room();
    if (stream->paused_) on_paused(*stream);
  }
}

void StreamManager::reclaim(std::size_t bytes, const Stream* except) {
  const std::size_t target = policy_->budget.used() > bytes ? policy_->budget.used() - bytes : 0;
  const TimePoint buried_until = executor_->clock().now() + limits().tombstone;
  for (Stream* stream = oldest_; stream != nullptr && policy_->budget.used() > target;) {
    Stream* const next = stream->newer_;
    if (stream != except) {
      if (stream->delivered() && stream->cursors_ == nullptr) {
        store_.bury(*stream, buried_until);
        remove(*stream);
      } else {
        stream->log_.release_below(stream->hold());
      }
    }
    stream = next;
  }
}

bool StreamManager::short_of_memory() const {
  return policy_->budget.used() > policy_->budget.limit() / 16 * 15;
}

void StreamManager::sweep() {
  const TimePoint now = executor_->clock().now();
  for (Stream* stream = oldest_; stream != nullptr;) {
    Stream* const next = stream->newer_;
    if (stream->last_access_ + limits().expiry > now) break;
    if (stream->cursors_ != nullptr) {
      // Somebody is attached, which is access enough.
      stream->touch();
    } else {
      const std::shared_ptr<Stream> keep = stream->shared_from_this();
      ++counters_.expired;
      keep->abandon({.code = kStreamExpired, .message = "Stream session expired: nobody read it"});
      store_.bury(*keep, now + limits().tombstone);
      remove(*keep);
    }
    stream = next;
  }
  store_.sweep_tombstones(now);
  counters_.tombstones = store_.tombstones();
  if (store_.size() > 0 || store_.tombstones() > 0) {
    sweep_timer_ = executor_->schedule_at(now + kSweepInterval, [this] {
      sweep_timer_ = 0;
      sweep();
    });
  }
}

void StreamManager::remove(Stream& stream) {
  if (!std::exchange(stream.listed_, false)) return;
  const std::shared_ptr<Stream> keep = stream.shared_from_this();
  unlink(stream);
  if (!stream.ended()) {
    stream.abandon({.code = kStreamInvalidState, .message = "The server is shutting down"});
  }
  while (stream.cursors_ != nullptr) {
    Cursor* const cursor = stream.cursors_;
    cursor->detach();
    cursor->on_dropped({.code = kStreamExpired, .message = "The stream is gone"});
  }
  store_.erase(stream.id());
  stream.note_delivered();
  --counters_.open;
}

}  // namespace sluice

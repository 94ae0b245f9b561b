#include "stream/stream_manager.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "core/crypto/random.hpp"
#include "core/log/log.hpp"
#include "core/log/log_limit.hpp"
#include "core/log/over_limit.hpp"
#include "core/release_memory.hpp"
#include "stream/stream_error.hpp"

namespace sluice {
namespace {

constexpr Duration kSweepInterval = std::chrono::seconds(1);
constexpr Duration kMemoryRetry = std::chrono::milliseconds(50);
/// A scratch string of more than this many bytes is freed, so that one huge chunk does not hold
/// memory for ever.
constexpr std::size_t kKeptScratch = std::size_t{128} << 10U;
/// What telling a reader of new chunks takes of the work of a turn, in bytes of an answer.
constexpr std::size_t kReaderCost = 1024;

const Error& shutting_down() {
  static const Error error{kStreamInvalidState, "The server is shutting down"};
  return error;
}
const Error& gone() {
  static const Error error{kStreamExpired, "The stream is gone"};
  return error;
}
const Error& expired() {
  static const Error error{kStreamExpired, "Stream session expired: nobody read it"};
  return error;
}

bool by_priority(const std::shared_ptr<ChunkStream>& a, const std::shared_ptr<ChunkStream>& b) {
  return a->priority() > b->priority();
}

}  // namespace

StreamManager::StreamManager(Executor& executor, StreamPolicy& policy, std::size_t loop,
                             std::size_t loops)
    : executor_(&executor), work_(executor), policy_(&policy), loop_(loop), loops_(loops) {}

StreamManager::~StreamManager() {
  *alive_ = false;
  while (accessed_.oldest() != nullptr) remove(*accessed_.oldest(), shutting_down());
  executor_->cancel(sweep_timer_);
  executor_->cancel(retry_timer_);
}

std::size_t StreamManager::loop_of(std::string_view id, std::size_t loops) {
  if (loops == 1) return 0;
  std::uint64_t hash = 0xCBF29CE484222325U;  // FNV-1a
  for (const char c : id) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  return static_cast<std::size_t>((hash >> 32U) % loops);
}

Result<std::shared_ptr<ChunkStream>> StreamManager::start(StartOptions options) {
  ClientQuota::Unit unit = policy_->quota.take(options.principal);
  if (!unit) {
    return over_limit("You have " + std::to_string(policy_->quota.limit()) +
                      " streams in progress, the most that one client may have "
                      "(streams-per-client); read or abort some");
  }
  if (limited() >= policy_->max_streams && !evict_one()) {
    return over_limit("The server is at its limit of streams, " +
                      std::to_string(policy_->max_streams) +
                      " per event loop; read or abort some, or try again later");
  }
  std::shared_ptr<MemoryShare> share = policy_->memory.of(options.principal);
  return add(std::move(options), std::move(share), std::move(unit), false);
}

std::shared_ptr<ChunkStream> StreamManager::start_private(std::string finder, const char* method,
                                                          const std::string& client) {
  while (limited() > policy_->max_streams && evict_one()) {
  }
  return add({.principal = std::move(finder), .method = method, .expects_poller = false},
             policy_->memory.of(client), {}, true);
}

std::shared_ptr<ChunkStream> StreamManager::add(StartOptions options,
                                                std::shared_ptr<MemoryShare> share,
                                                ClientQuota::Unit unit, bool is_private) {
  std::string id;
  do {
    id = random_id(StreamId::kLength);
  } while (loop_of(id, loops_) != loop_ || store_.contains(id));
  auto stream = std::make_shared<ChunkStream>(
      ChunkStream::Options{.id = StreamId(id),
                           .principal = std::move(options.principal),
                           .method = options.method,
                           .priority = std::clamp(options.priority, kMinPriority, kMaxPriority),
                           .expects_poller = options.expects_poller,
                           .is_private = is_private,
                           .share = std::move(share),
                           .unit = std::move(unit)},
      *this);
  schedule_sweep();
  store_.insert(stream);
  if (is_private) {
    ++private_under_way_;
  } else {
    try {
      started_.push(stream->log_.share(), *stream);
    } catch (...) {
      store_.erase(stream->id());
      throw;
    }
  }
  stream->listed_ = true;
  accessed_.push(*stream);
  ++counters_.started;
  ++counters_.active;
  ++counters_.open;
  return stream;
}

Result<std::shared_ptr<ChunkStream>> StreamManager::find(std::string_view id,
                                                         std::string_view principal) {
  static constexpr std::string_view kNotFound =
      "Stream session not found: no stream of yours has this stream_id";
  if (principal.empty()) return fail(kStreamNotFound, std::string(kNotFound));
  StreamStore::Found found = store_.find(id, principal);
  switch (found.presence) {
    case StreamStore::Presence::present:
      found.stream->touch();
      return std::move(found.stream);
    case StreamStore::Presence::expired:
      return fail(kStreamExpired, "Stream session expired: nobody read it in time; start it again");
    case StreamStore::Presence::absent:
      break;
  }
  return fail(kStreamNotFound, std::string(kNotFound));
}

void StreamManager::discard(ChunkStream& stream) {
  remove(stream, gone());
}

std::vector<std::shared_ptr<ChunkStream>> StreamManager::streams_of(const std::string& principal,
                                                                    std::size_t most) const {
  std::vector<std::shared_ptr<ChunkStream>> result;
  const auto started = started_.of(*memory_of(principal));
  for (ChunkStream* stream = started.newest(); stream != nullptr && result.size() < most;
       stream = started.older_than(*stream)) {
    // A client may have several principals.
    if (stream->principal() == principal) result.push_back(stream->shared_from_this());
  }
  return result;
}

void StreamManager::end_all(const Error& error) {
  std::vector<std::shared_ptr<ChunkStream>> active;
  for (ChunkStream* stream = accessed_.newest(); stream != nullptr;
       stream = accessed_.older_than(*stream)) {
    if (!stream->ended()) active.push_back(stream->shared_from_this());
  }
  for (const auto& stream : active) stream->abandon(error);
}

void StreamManager::schedule_flush(std::shared_ptr<ChunkStream> stream) {
  to_flush_.push_back(std::move(stream));
  if (flush_posted_) return;
  executor_->post([this, alive = alive_] {
    if (*alive) flush();
  });
  flush_posted_ = true;
}

void StreamManager::flush() {
  flush_posted_ = false;
  std::vector<std::shared_ptr<ChunkStream>> turn;
  turn.swap(to_flush_);
  if (!std::ranges::is_sorted(turn, by_priority)) std::ranges::sort(turn, by_priority);
  for (const std::shared_ptr<ChunkStream>& stream : turn) {
    if (work_.has_left() && work_.is_idle()) {
      flush(*stream);
      continue;
    }
    try {
      work_.wait(ClientMemory::client(stream->log_.share()), [this, stream] { flush(*stream); });
    } catch (const std::bad_alloc&) {
      flush(*stream);
    }
  }
  if (to_flush_.empty()) {
    turn.clear();
    to_flush_.swap(turn);
  }
}

void StreamManager::flush(ChunkStream& stream) {
  try {
    if (stream.has_news()) tell(stream);
    // Cleared only now: what readers do during their round needs no further turn.
    stream.queued_ = false;
    stream.settle();
    if (stream.has_news()) stream.queue();
  } catch (...) {
    static LogLimit limit;
    log_exception(limit, "A reader or the producer of a stream failed");
    // Other streams go on, and the readers of this one are told when it changes again.
    stream.queued_ = false;
  }
}

void StreamManager::tell(ChunkStream& stream) {
  if (const std::size_t cost = stream.notify_cursors(work_.left(), kReaderCost)) work_.worked(cost);
}

std::string& StreamManager::emptied(std::string& text) {
  if (text.capacity() > kKeptScratch) {
    release_memory(text);
  } else {
    text.clear();
  }
  return text;
}

void StreamManager::on_access(ChunkStream& stream) {
  if (accessed_.newest() == &stream || !stream.listed_) return;
  accessed_.remove(stream);
  accessed_.push(stream);
}

void StreamManager::on_ended(ChunkStream& stream) {
  if (stream.is_private_) --private_under_way_;
  stream.unit_.release();
  ++counters_.ended;
  --counters_.active;
  ++counters_.unread;
  place(stream);
}

void StreamManager::place(ChunkStream& stream) noexcept {
  if (!stream.listed_) return;
  try {
    if (stream.ended()) ended_.put(stream);
    if (stream.yields_) return;
    yielding_.push(stream.log_.share(), stream);
    stream.yields_ = true;
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch)
  }
}

void StreamManager::on_paused(ChunkStream& stream) noexcept {
  if (stream.log_.share().is_short()) await_memory(stream);
}

void StreamManager::await_memory(ChunkStream& stream) noexcept {
  if (stream.awaits_memory_) return;
  try {
    if (retry_timer_ == 0) {
      retry_timer_ = executor_->schedule_at(executor_->clock().now() + kMemoryRetry, [this] {
        retry_timer_ = 0;
        retry_paused();
      });
    }
    await_memory_.push_back(stream.weak_from_this());
    stream.awaits_memory_ = true;
  } catch (const std::bad_alloc&) {
    catch_up_later();
  }
}

void StreamManager::retry_paused() {
  std::vector<std::weak_ptr<ChunkStream>> waiting;
  waiting.swap(await_memory_);
  // At the end of this turn each stream is either woken or made to wait again.
  for (const auto& weak : waiting) {
    const auto stream = weak.lock();
    if (stream == nullptr) continue;
    stream->awaits_memory_ = false;
    try {
      if (stream->log_.share().is_short()) {
        reclaim(policy_->budget.limit() / 8, stream->log_.share());
      }
    } catch (const std::bad_alloc&) {
      catch_up_later();
    }
    if (stream->paused_) stream->queue();
  }
}

void StreamManager::reclaim(std::size_t bytes, const MemoryShare& share) {
  const bool is_any = short_of_memory();
  const std::size_t target = policy_->budget.used() > bytes ? policy_->budget.used() - bytes : 0;
  while (policy_->budget.used() > target) {
    ChunkStream* const stream = (is_any ? yielding_.of_any() : yielding_.of(share)).oldest();
    if (stream == nullptr) return;
    if (stream->evictable()) {
      leave_tombstone(*stream, gone());
    } else {
      yields_no_more(*stream);
      stream->log_.release_below(stream->hold());
    }
  }
}

void StreamManager::yields_no_more(ChunkStream& stream) {
  if (!stream.yields_) return;
  stream.yields_ = false;
  yielding_.remove(stream.log_.share(), stream);
}

bool StreamManager::evict_one() {
  ChunkStream* const stream = ended_.next();
  if (stream == nullptr) return false;
  const std::shared_ptr<ChunkStream> keep = stream->shared_from_this();
  entomb(*stream);
  unlist(*stream, gone());
  if (stream->has_readers()) {
    // The caller needs the room and must not be re-entered, so readers are notified later.
    executor_->post([keep] { let_go(*keep, gone()); });
  } else {
    let_go(*stream, gone());
  }
  return true;
}

bool StreamManager::short_of_memory() const {
  return policy_->budget.used() > policy_->budget.limit() / 16 * 15;
}

void StreamManager::schedule_sweep() {
  if (sweep_timer_ != 0) return;
  sweep_timer_ = executor_->schedule_at(executor_->clock().now() + kSweepInterval, [this] {
    sweep_timer_ = 0;
    // First, because it needs no memory now, and the sweep may fail for lack of it.
    if (store_.size() > 0 || store_.tombstones() > 0) schedule_sweep();
    sweep();
  });
}

void StreamManager::sweep() {
  if (std::exchange(must_catch_up_, false)) {
    for (ChunkStream* stream = accessed_.newest(); stream != nullptr;
         stream = accessed_.older_than(*stream)) {
      stream->catch_up();
    }
  }
  const TimePoint now = executor_->clock().now();
  // Each stream that is examined leaves the front of the list. Producers and readers that are
  // notified may change the rest of the list.
  for (std::size_t left = store_.size(); left > 0 && accessed_.oldest() != nullptr; --left) {
    const std::shared_ptr<ChunkStream> stream = accessed_.oldest()->shared_from_this();
    if (stream->last_access_ + limits().expiry > now) break;
    if (stream->cursors_ != nullptr) {
      // An attached reader counts as access.
      stream->touch();
      continue;
    }
    try {
      leave_tombstone(*stream, expired());
      ++counters_.expired;
    } catch (const std::bad_alloc&) {
      // Its turn comes again. Others may give memory back first.
      stream->touch();
    }
  }
  store_.sweep_tombstones(now);
  counters_.tombstones = store_.tombstones();
}

void StreamManager::leave_tombstone(ChunkStream& stream, const Error& reason) {
  const std::shared_ptr<ChunkStream> keep = stream.shared_from_this();
  stream.abandon(reason);
  entomb(stream);
  remove(stream, reason);
}

void StreamManager::entomb(const ChunkStream& stream) {
  store_.leave_tombstone(stream, executor_->clock().now() + limits().tombstone);
  counters_.tombstones = store_.tombstones();
}

void StreamManager::remove(ChunkStream& stream, const Error& reason) {
  const std::shared_ptr<ChunkStream> keep = stream.shared_from_this();
  if (unlist(stream, reason)) let_go(stream, reason);
}

bool StreamManager::unlist(ChunkStream& stream, const Error& reason) {
  // First, because there may be no memory to end it. The producer may remove the stream itself.
  if (stream.listed_) stream.abandon(reason);
  if (!stream.listed_) return false;
  stream.listed_ = false;
  if (stream.ended()) ended_.remove(stream);
  accessed_.remove(stream);
  if (!stream.is_private_) started_.remove(stream.log_.share(), stream);
  yields_no_more(stream);
  store_.erase(stream.id());
  --counters_.open;
  stream.mark_delivered();
  return true;
}

void StreamManager::let_go(ChunkStream& stream, const Error& reason) {
  while (stream.cursors_ != nullptr) {
    Cursor* const cursor = stream.cursors_;
    cursor->detach();
    cursor->on_dropped(reason);
  }
  // Frees the memory at once, even if somebody keeps a reference to the stream.
  stream.log_.clear();
}

}  // namespace sluice

#include "client/api/calls/event_queue.hpp"

#include <cstdint>
#include <iterator>
#include <utility>

#include "core/release_memory.hpp"

namespace sluice::detail {
namespace {

/// Entries whose memory is kept while the queue is empty, so that each event need not ask for it.
constexpr std::size_t kKeptEntries = 1;

}  // namespace

void EventQueue::push(CallEvent event, std::size_t bytes) {
  entries_.push_back({std::move(event), bytes});
  bytes_ += bytes;
  while (entries_.size() - first_ > 1 &&
         (entries_.size() - first_ > max_events_ || bytes_ > max_bytes_)) {
    drop_oldest();
  }
}

void EventQueue::mark_newest(std::string resumption) {
  Entry& newest = entries_.back();
  const std::size_t was = newest.event.resumption.size();
  newest.bytes += resumption.size() - was;
  bytes_ += resumption.size() - was;
  newest.event.resumption = std::move(resumption);
}

CallEvent EventQueue::pop() {
  CallEvent event = std::move(entries_[first_].event);
  bytes_ -= entries_[first_].bytes;
  ++first_;
  compact();
  return event;
}

void EventQueue::drop_oldest() {
  const CallEvent oldest = pop();
  const std::uint64_t dropped = oldest.dropped + (oldest.has_no_message ? 0 : 1);
  entries_[first_].event.dropped += dropped;
}

void EventQueue::compact() {
  if (first_ < entries_.size() - first_) return;
  if (empty() && entries_.capacity() > kKeptEntries) {
    release_memory(entries_);
  } else {
    entries_.erase(entries_.begin(),
                   std::next(entries_.begin(), static_cast<std::ptrdiff_t>(first_)));
  }
  first_ = 0;
}

}  // namespace sluice::detail

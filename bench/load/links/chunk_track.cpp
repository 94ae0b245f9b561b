#include "links/chunk_track.hpp"

#include <charconv>
#include <cstring>

namespace sluice::bench {
namespace {

constexpr std::size_t kNowhere = std::string_view::npos;

std::size_t position_of(std::string_view text, std::string_view what, std::size_t from) {
  if (from >= text.size()) return kNowhere;
  const void* found = ::memmem(text.data() + from, text.size() - from, what.data(), what.size());
  return found == nullptr ? kNowhere
                          : static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

bool is_at(std::string_view text, std::string_view what, std::size_t at) {
  return at + what.size() <= text.size() && text.compare(at, what.size(), what) == 0;
}

}  // namespace

void ChunkTrack::restart() {
  next_ = -1;
  taken_ = 0;
  first_stamp_ = 0;
  last_read_ = 0;
}

bool ChunkTrack::take(std::string_view text, std::int64_t now, Tally& tally) {
  if (!is_at(text, label_, label_hint_)) {
    label_hint_ = position_of(text, label_, 0);
    if (label_hint_ == kNowhere) {
      label_hint_ = 0;
      return false;
    }
  }
  read(text, label_hint_ + label_.size(), now, tally);
  return true;
}

std::size_t ChunkTrack::take_all(std::string_view text, std::int64_t now, Tally& tally) {
  std::size_t count = 0;
  for (std::size_t at = position_of(text, label_, 0); at != kNowhere;
       at = position_of(text, label_, at)) {
    at = read(text, at + label_.size(), now, tally);
    ++count;
  }
  return count;
}

std::size_t ChunkTrack::read(std::string_view text, std::size_t digits, std::int64_t now,
                             Tally& tally) {
  std::int64_t number = 0;
  const auto [end, error] =
      std::from_chars(text.data() + digits, text.data() + text.size(), number);
  if (error != std::errc() || (next_ >= 0 && number != next_)) tally.error("a chunk is missing");
  next_ = number + 1;
  const auto after = static_cast<std::size_t>(end - text.data());
  if (taken_++ == 0) first_number_ = number;
  read_stamp(text, after, now, tally);
  return after;
}

void ChunkTrack::read_stamp(std::string_view text, std::size_t from, std::int64_t now,
                            Tally& tally) {
  static constexpr std::string_view kName = "t_ns";
  if (!is_at(text, kName, from + stamp_hint_)) {
    const std::size_t found = position_of(text, kName, from);
    if (found == kNowhere) return;
    stamp_hint_ = found - from;
  }
  std::size_t at = from + stamp_hint_ + kName.size();
  while (at < text.size() && (text[at] < '0' || text[at] > '9')) ++at;
  std::int64_t stamp = 0;
  std::from_chars(text.data() + at, text.data() + text.size(), stamp);
  tally.added.add(now - stamp);
  if (interval_ns_ <= 0) return;
  if (first_stamp_ == 0) {
    first_stamp_ = stamp;
  } else {
    tally.schedule.add(now - first_stamp_ - (next_ - 1 - first_number_) * interval_ns_);
    tally.gap.add(now - last_read_);
  }
  last_read_ = now;
}

bool is_last_chunk(std::string_view text) {
  // A chunk says at its very end whether it is the last one, so the search is short.
  static constexpr std::size_t kTail = 24;
  const std::size_t tail = text.size() < kTail ? 0 : text.size() - kTail;
  if (position_of(text, R"("end":false)", tail) != kNowhere) return false;
  return position_of(text, R"("end":true)", 0) != kNowhere;
}

std::string_view find_stream_id(std::string_view text) {
  static constexpr std::string_view kMember = R"("stream_id":")";
  const std::size_t at = position_of(text, kMember, 0);
  if (at == kNowhere) return {};
  const std::size_t begin = at + kMember.size();
  return text.substr(begin, text.find('"', begin) - begin);
}

}  // namespace sluice::bench

#include "net/http/sse.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace sluice {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

Result<void> too_large(std::string_view what, std::size_t limit) {
  return fail(502, std::string(what) + " of the event stream is longer than " +
                       std::to_string(limit) + " bytes");
}

/// Finds where the lines of a text end: at '\r', '\n' or both. Looks at each byte twice at most.
class LineEnds {
 public:
  explicit LineEnds(std::string_view text) : text_(text), feed_(feed_from(0)) {}

  /// The first '\r' or '\n' from `at` on, or the text's size. `at` must not decrease.
  std::size_t find(std::size_t at) {
    if (feed_ < at) feed_ = feed_from(at);
    return at + std::min(text_.substr(at, feed_ - at).find('\r'), feed_ - at);
  }

 private:
  [[nodiscard]] std::size_t feed_from(std::size_t at) const {
    return std::min(text_.find('\n', at), text_.size());
  }

  std::string_view text_;
  std::size_t feed_;  // the next '\n', or the text's size
};

void append_data(std::string& out, std::string_view data) {
  LineEnds ends(data);
  for (std::size_t at = 0;;) {
    const std::size_t end = ends.find(at);
    out.append("data: ").append(data.substr(at, end - at)).push_back('\n');
    if (end == data.size()) return;
    at = end + (data.substr(end).starts_with("\r\n") ? 2 : 1);
  }
}

}  // namespace

void append_sse_event(std::string& out, std::string_view id, std::string_view data,
                      std::string_view event) {
  if (!event.empty()) out.append("event: ").append(event).push_back('\n');
  if (!id.empty()) out.append("id: ").append(id).push_back('\n');
  append_data(out, data);
  out.push_back('\n');
}

void append_sse_event(std::string& out, std::uint64_t id, std::string_view data) {
  std::array<char, 20> digits{};
  const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), id);
  append_sse_event(out, std::string_view(digits.data(), written.ptr), data);
}

void append_sse_comment(std::string& out, std::string_view text) {
  out.push_back(':');
  if (!text.empty()) {
    out.push_back(' ');
    const std::size_t start = out.size();
    out.append(text);
    // A comment has one line.
    std::replace_if(
        out.begin() + static_cast<std::ptrdiff_t>(start), out.end(),
        [](char c) { return c == '\r' || c == '\n'; }, ' ');
  }
  out.append("\n\n");
}

void append_sse_retry(std::string& out, std::uint64_t milliseconds) {
  out.append("retry: ").append(std::to_string(milliseconds)).append("\n\n");
}

void SseDecoder::begin_stream(std::string_view last_event_id) {
  SseDecoder next(limits_);
  next.id_ = next.last_event_id_ = last_event_id;
  next.retry_ = retry_;
  *this = std::move(next);
}

Result<void> SseDecoder::feed(std::string_view bytes, const Sink& sink) {
  if (failed_) return fail(502, "The event stream is broken");
  while (bom_seen_ < kByteOrderMark.size() && !bytes.empty()) {
    if (bytes.front() == kByteOrderMark[bom_seen_]) {
      ++bom_seen_;
      bytes.remove_prefix(1);
    } else {
      line_.append(kByteOrderMark.substr(0, bom_seen_));
      bom_seen_ = static_cast<std::uint8_t>(kByteOrderMark.size());
    }
  }
  LineEnds ends(bytes);
  for (std::size_t at = 0; at < bytes.size();) {
    if (std::exchange(after_cr_, false) && bytes[at] == '\n') {
      ++at;
      continue;
    }
    const std::size_t end = ends.find(at);
    std::string_view line = bytes.substr(at, end - at);
    if (line_.size() + line.size() > limits_.line) {
      failed_ = true;
      return too_large("A line", limits_.line);
    }
    if (end == bytes.size()) {
      line_.append(line);
      return {};
    }
    if (!line_.empty()) line = line_.append(line);
    after_cr_ = bytes[end] == '\r';
    at = end + 1;
    if (Result<void> taken = take_line(line, sink); !taken) {
      failed_ = true;
      return taken;
    }
    line_.clear();
  }
  return {};
}

Result<void> SseDecoder::take_line(std::string_view line, const Sink& sink) {
  if (line.empty()) {
    dispatch(sink);
    return {};
  }
  const std::size_t colon = line.find(':');
  if (colon == 0) return {};
  const std::string_view field = line.substr(0, colon);
  std::string_view value =
      colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "data") {
    if (data_.size() + value.size() + 1 > limits_.event)
      return too_large("An event", limits_.event);
    data_.append(value).push_back('\n');
  } else if (field == "event") {
    type_ = value;
  } else if (field == "id") {
    if (value.find('\0') == std::string_view::npos) {
      id_ = value;
      has_id_ = true;
    }
  } else if (field == "retry") {
    std::uint64_t milliseconds = 0;
    const char* const end = value.data() + value.size();
    const auto parsed = std::from_chars(value.data(), end, milliseconds);
    if (!value.empty() && parsed.ec == std::errc() && parsed.ptr == end) retry_ = milliseconds;
  }
  return {};
}

void SseDecoder::dispatch(const Sink& sink) {
  last_event_id_ = id_;
  if (!data_.empty()) {
    data_.pop_back();
    sink({.type = type_.empty() ? std::string_view("message") : std::string_view(type_),
          .data = data_,
          .last_event_id = last_event_id_,
          .has_id = has_id_});
  }
  data_.clear();
  type_.clear();
  has_id_ = false;
}

}  // namespace sluice

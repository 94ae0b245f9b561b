#include "net/sse.hpp"

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

/// The position of the first '\r' or '\n' in `text`, or its size.
std::size_t find_line_end(std::string_view text) {
  const std::size_t feed = std::min(text.find('\n'), text.size());
  return std::min(text.substr(0, feed).find('\r'), feed);
}

void append_data(std::string& out, std::string_view data) {
  for (;;) {
    const std::size_t end = find_line_end(data);
    out.append("data: ").append(data.substr(0, end)).push_back('\n');
    if (end == data.size()) return;
    const bool two_bytes = data[end] == '\r' && end + 1 < data.size() && data[end + 1] == '\n';
    data.remove_prefix(end + (two_bytes ? 2 : 1));
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
  while (!bytes.empty()) {
    if (std::exchange(after_cr_, false) && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    // No further than the limit, so that a stream of '\r' costs no search to the end each time.
    const std::size_t window = std::min(bytes.size(), limits_.line - line_.size() + 1);
    const std::size_t end = find_line_end(bytes.substr(0, window));
    if (line_.size() + end > limits_.line) {
      failed_ = true;
      return too_large("A line", limits_.line);
    }
    if (end == bytes.size()) {
      line_.append(bytes);
      return {};
    }
    std::string_view line = bytes.substr(0, end);
    if (!line_.empty()) line = line_.append(line);
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
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
    if (value.find('\0') == std::string_view::npos) id_ = value;
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
          .last_event_id = last_event_id_});
  }
  data_.clear();
  type_.clear();
}

}  // namespace sluice

#include "net/http/compression.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <stdexcept>
#include <vector>
#include <zlib.h>

#include "core/text/text.hpp"
#include "net/http/http_types.hpp"

namespace sluice {
namespace {

// zlib's windowBits (zlib.h, inflateInit2): the sign and the size choose the format.
constexpr int kRawWindow = -15;
constexpr int kZlibWindow = 15;
constexpr int kGzipWindow = 15 + 16;
constexpr int kMemoryLevel = 8;
constexpr std::size_t kStep = std::size_t{16} << 10U;
constexpr std::size_t kReadStep = std::size_t{4} << 10U;
/// The cost of beginning another stream, in bytes of output.
constexpr std::size_t kStreamWork = 256;
/// The cost of reading a byte, in bytes of output. A byte that describes unused codes takes about
/// 0.1 us and produces no output.
constexpr std::size_t kReadWork = 16;
/// The end of the empty stored block after a message, which is not sent (RFC 7692, section 7.2.1).
constexpr std::string_view kMessageTail("\x00\x00\xff\xff", 4);
/// Takes half the time of zlib's default level, for about a seventh more bytes.
constexpr int kGzipLevel = 1;

Bytef* bytes(std::string_view text) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
}

class Compressor {
 public:
  explicit Compressor(int window) {
    if (deflateInit2(&stream_, kGzipLevel, Z_DEFLATED, window, kMemoryLevel, Z_DEFAULT_STRATEGY) !=
        Z_OK) {
      throw std::bad_alloc();
    }
  }
  ~Compressor() { deflateEnd(&stream_); }
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;

  void reset() { deflateReset(&stream_); }
  void run(std::string_view data, int flush, std::string& out) {
    stream_.next_in = bytes(data);
    stream_.avail_in = static_cast<uInt>(data.size());
    const std::size_t start = out.size();
    std::size_t used = 0;
    do {
      out.resize(start + used + std::max(kStep, data.size() / 4));
      const auto capacity = static_cast<uInt>(out.size() - start - used);
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + start + used);
      stream_.avail_out = capacity;
      deflate(&stream_, flush);
      used += capacity - stream_.avail_out;
    } while (stream_.avail_out == 0);
    out.resize(start + used);
  }

 private:
  z_stream stream_{};
};

enum class Inflation : std::uint8_t { more, ok, broken, too_large, incomplete };

/// Expands one text in steps.
class Inflater {
 public:
  /// With a `tail`, which is read after the text, the text is a series of blocks. Otherwise it is a
  /// whole stream, or the members of a gzip file.
  Inflater(int window, std::size_t max_size, std::string_view tail = {})
      : max_size_(max_size), tail_(tail), may_go_on_(window != kZlibWindow) {
    if (inflateInit2(&stream_, window) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// Continues with `data`, the same whole text each time. Appends to `out` until its work has
  /// grown by `most` or a little more.
  Inflation step(std::string_view data, std::size_t most, std::string& out) {
    std::array<char, kStep> piece;
    const std::size_t end = data.size() + tail_.size();
    for (const std::size_t before = work_; work_ - before < most;) {
      // Input is read in pieces, because it takes time even if it produces no output.
      const std::string_view in =
          used_ < data.size() ? data.substr(used_, kReadStep) : tail_.substr(used_ - data.size());
      stream_.next_in = bytes(in);
      stream_.avail_in = static_cast<uInt>(in.size());
      stream_.next_out = reinterpret_cast<Bytef*>(piece.data());
      stream_.avail_out = static_cast<uInt>(piece.size());
      const int status = inflate(&stream_, Z_SYNC_FLUSH);
      const std::size_t consumed = in.size() - stream_.avail_in;
      const std::size_t came = piece.size() - stream_.avail_out;
      used_ += consumed;
      total_ += came;
      work_ += kReadWork * consumed + came;
      if (total_ > max_size_) return Inflation::too_large;
      out.append(piece.data(), came);
      const bool is_at_end = used_ == end;
      if (status == Z_STREAM_END) {
        if (is_at_end) return Inflation::ok;
        // A message may continue after a final block (RFC 7692, section 7.2.3.4), and gzip with
        // another member (RFC 1952, section 2.2).
        if (!may_go_on_ || inflateReset(&stream_) != Z_OK) return Inflation::broken;
        work_ += kStreamWork;
        continue;
      }
      // zlib.h, inflate(): 128 stands for the end of a block, less than 64 for bits left over.
      const bool between_blocks = (stream_.data_type & 0xBF) == 128;
      if (status == Z_OK && is_at_end && between_blocks && !tail_.empty()) return Inflation::ok;
      const bool is_used_up = status == Z_OK && is_at_end && stream_.avail_out > 0;
      if (status == Z_BUF_ERROR || is_used_up) return Inflation::incomplete;
      if (status != Z_OK) return Inflation::broken;
    }
    return Inflation::more;
  }
  [[nodiscard]] std::size_t work() const { return work_; }

  /// Approximate memory of an object, in bytes.
  static constexpr std::size_t kMemory = std::size_t{40} << 10U;

 private:
  z_stream stream_{};
  std::size_t used_ = 0;   // bytes of the text and the tail
  std::size_t total_ = 0;  // bytes that have come out
  std::size_t work_ = 0;
  const std::size_t max_size_;
  const std::string_view tail_;
  const bool may_go_on_;  // after the end of a stream
};

/// zlib's windowBits for a content coding, or 0 if it is not known.
int window_of(std::string_view coding) {
  if (equals_ignoring_case(coding, "gzip") || equals_ignoring_case(coding, "x-gzip")) {
    return kGzipWindow;
  }
  return equals_ignoring_case(coding, "deflate") ? kZlibWindow : 0;
}

/// zlib's windowBits for the codings of a body, in the order in which they were applied; 0: none.
using Windows = std::array<int, 2>;

Result<Windows> windows_of(std::string_view content_encoding) {
  Windows windows{};
  std::size_t count = 0;
  while (!content_encoding.empty()) {
    const std::size_t comma = content_encoding.find(',');
    const std::string_view coding = trim(content_encoding.substr(0, comma));
    if (!coding.empty() && !equals_ignoring_case(coding, "identity")) {
      const int window = window_of(coding);
      if (window == 0) {
        return fail(415, "Content-Encoding: only gzip, deflate and identity are known here");
      }
      if (count == windows.size()) {
        return fail(415, "Content-Encoding: at most two codings may be applied");
      }
      windows[count++] = window;
    }
    if (comma == std::string_view::npos) break;
    content_encoding.remove_prefix(comma + 1);
  }
  return windows;
}

}  // namespace

bool accepts_gzip(std::string_view accept_encoding) {
  std::optional<double> gzip = list_weight(accept_encoding, "gzip");
  if (!gzip) gzip = list_weight(accept_encoding, "x-gzip");
  if (!gzip) gzip = list_weight(accept_encoding, "*");
  return gzip && *gzip > 0 && *gzip >= list_weight(accept_encoding, "identity").value_or(0);
}

void gzip(std::string_view data, std::string& out) {
  thread_local Compressor compressor(kGzipWindow);
  compressor.reset();
  compressor.run(data, Z_FINISH, out);
}

class Gzip::Stage : public Compressor {
 public:
  using Compressor::Compressor;
};

Gzip::Gzip() : stage_(std::make_unique<Stage>(kGzipWindow)) {}

Gzip::~Gzip() = default;

void Gzip::step(std::string_view piece, bool is_last, std::string& out) {
  stage_->run(piece, is_last ? Z_FINISH : Z_NO_FLUSH, out);
}

class ContentDecoder::Stage : public Inflater {
 public:
  using Inflater::Inflater;
};

ContentDecoder::ContentDecoder(std::size_t max_size) : max_size_(max_size) {}

ContentDecoder::~ContentDecoder() = default;

Result<void> ContentDecoder::check(std::string_view content_encoding) {
  const Result<Windows> windows = windows_of(content_encoding);
  if (!windows) return std::unexpected(windows.error());
  return {};
}

Result<void> ContentDecoder::begin(std::string_view content_encoding) {
  const Result<Windows> windows = windows_of(content_encoding);
  if (!windows) return std::unexpected(windows.error());
  for (const int window : *windows) {
    if (window != 0) stages_.push_back(std::make_unique<Stage>(window, max_size_));
  }
  return {};
}

Result<bool> ContentDecoder::step(std::string_view body, std::size_t most) {
  if (stages_.empty()) {
    if (is_first_) out_ = body;
    return true;
  }
  // The last coding applied is the first to be undone.
  Stage& stage = *stages_.back();
  const std::size_t before = stage.work();
  const Inflation inflation = stage.step(is_first_ ? body : in_, most, out_);
  work_ += stage.work() - before;
  switch (inflation) {
    case Inflation::more:
      return false;
    case Inflation::ok:
      is_first_ = false;
      stages_.pop_back();
      if (stages_.empty()) return true;
      in_ = std::exchange(out_, {});
      return false;
    case Inflation::too_large:
      return fail(413, "The request's body expands to more than " + std::to_string(max_size_) +
                           " bytes (max_message, or --max-body of sluice serve)");
    case Inflation::incomplete:
      return fail(400, "The compressed body is cut off");
    case Inflation::broken:
      break;
  }
  return fail(400, "The compressed body is broken");
}

std::size_t ContentDecoder::held_bytes() const {
  return in_.capacity() + out_.capacity();
}

Result<std::string> decode_content(std::string_view content_encoding, std::string_view body,
                                   std::size_t max_size) {
  ContentDecoder decoder(max_size);
  if (Result<void> known = decoder.begin(content_encoding); !known) {
    return std::unexpected(std::move(known.error()));
  }
  for (;;) {
    const Result<bool> done = decoder.step(body, max_size + 1);
    if (!done) return std::unexpected(done.error());
    if (*done) return decoder.take();
  }
}

void deflate_message(std::string_view data, std::string& out) {
  thread_local Compressor compressor(kRawWindow);
  compressor.reset();
  compressor.run(data, Z_SYNC_FLUSH, out);
  out.resize(out.size() - kMessageTail.size());
}

class MessageInflater::Stage : public Inflater {
 public:
  using Inflater::Inflater;
};

MessageInflater::MessageInflater(std::size_t max_size)
    : stage_(std::make_unique<Stage>(kRawWindow, max_size, kMessageTail)), max_size_(max_size) {}

MessageInflater::~MessageInflater() = default;

MessageInflater::MessageInflater(MessageInflater&& other) noexcept = default;

Result<bool> MessageInflater::step(std::string_view payload) {
  switch (stage_->step(payload, kExpandedAtOnce, text_)) {
    case Inflation::more:
      return false;
    case Inflation::ok:
      return true;
    case Inflation::too_large:
      return fail(1009, "A message expands to more than " + std::to_string(max_size_) +
                            " bytes (max_message, or --max-body of sluice serve)");
    case Inflation::incomplete:
    case Inflation::broken:
      break;
  }
  return fail(1007, "A compressed message is broken");
}

std::size_t MessageInflater::work() const {
  return stage_->work();
}

std::size_t MessageInflater::held_bytes() const {
  return text_.capacity() + Inflater::kMemory;
}

}  // namespace sluice

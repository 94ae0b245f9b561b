#include "net/compression.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <stdexcept>
#include <vector>
#include <zlib.h>

#include "core/text.hpp"
#include "net/http_types.hpp"

namespace sluice {
namespace {

// zlib's windowBits (zlib.h, inflateInit2): the sign and the size choose the format.
constexpr int kRawWindow = -15;
constexpr int kZlibWindow = 15;
constexpr int kGzipWindow = 15 + 16;
constexpr int kMemoryLevel = 8;
constexpr std::size_t kStep = std::size_t{16} << 10U;
constexpr int kGzipLevel = 5;

Bytef* bytes(std::string_view text) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
}

/// A compressor that is made once a thread and reset for each use.
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

  void run(std::string_view data, int flush, std::string& out) {
    deflateReset(&stream_);
    stream_.next_in = bytes(data);
    stream_.avail_in = static_cast<uInt>(data.size());
    const std::size_t start = out.size();
    std::size_t used = 0;
    do {
      out.resize(start + used + std::max(kStep, data.size() / 4));
      const auto room = static_cast<uInt>(out.size() - start - used);
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + start + used);
      stream_.avail_out = room;
      deflate(&stream_, flush);
      used += room - stream_.avail_out;
    } while (stream_.avail_out == 0);
    out.resize(start + used);
  }

 private:
  z_stream stream_{};
};

enum class Inflation : std::uint8_t { ok, broken, too_large, incomplete };

/// Expands `data` to at most `max_size` bytes at the end of `out`.
Inflation expand(std::string_view data, int window, std::size_t max_size, bool ends_with_stream,
                 std::string& out) {
  z_stream stream{};
  if (inflateInit2(&stream, window) != Z_OK) return Inflation::broken;
  stream.next_in = bytes(data);
  stream.avail_in = static_cast<uInt>(data.size());
  std::array<char, kStep> piece;
  std::size_t total = 0;
  Inflation outcome = Inflation::incomplete;
  for (;;) {
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    const int status = inflate(&stream, Z_SYNC_FLUSH);
    const std::size_t got = piece.size() - stream.avail_out;
    total += got;
    if (total > max_size) {
      outcome = Inflation::too_large;
      break;
    }
    out.append(piece.data(), got);
    if (status == Z_STREAM_END) {
      // A message may go on behind a final block (RFC 7692, section 7.2.3.4).
      if (stream.avail_in > 0 && !ends_with_stream && inflateReset(&stream) == Z_OK) continue;
      outcome = stream.avail_in == 0 ? Inflation::ok : Inflation::broken;
      break;
    }
    // zlib.h, inflate(): 128 stands for the end of a block, less than 64 for bits left over.
    const bool between_blocks = (stream.data_type & 0xBF) == 128;
    if (status == Z_OK && stream.avail_in == 0 && between_blocks && !ends_with_stream) {
      outcome = Inflation::ok;
      break;
    }
    if (status == Z_BUF_ERROR || (status == Z_OK && stream.avail_in == 0 && stream.avail_out > 0)) {
      break;
    }
    if (status != Z_OK) {
      outcome = Inflation::broken;
      break;
    }
  }
  inflateEnd(&stream);
  return outcome;
}

Result<std::string> decode_one(std::string_view coding, std::string_view body,
                               std::size_t max_size) {
  int window = 0;
  if (equals_ignoring_case(coding, "gzip") || equals_ignoring_case(coding, "x-gzip")) {
    window = kGzipWindow;
  } else if (equals_ignoring_case(coding, "deflate")) {
    window = kZlibWindow;
  } else {
    return fail(415, "Content-Encoding: only gzip, deflate and identity are known here");
  }
  std::string out;
  switch (expand(body, window, max_size, true, out)) {
    case Inflation::ok:
      return out;
    case Inflation::too_large:
      return fail(413, "The request's body expands to more than " + std::to_string(max_size) +
                           " bytes (max-body)");
    case Inflation::incomplete:
      return fail(400, "The compressed body is cut off");
    case Inflation::broken:
      break;
  }
  return fail(400, "The compressed body is broken");
}

}  // namespace

bool accepts_gzip(std::string_view accept_encoding) {
  double gzip = -1;
  double any = -1;
  double identity = -1;
  while (!accept_encoding.empty()) {
    const std::size_t comma = accept_encoding.find(',');
    const std::string_view item = accept_encoding.substr(0, comma);
    const std::size_t semicolon = item.find(';');
    const std::string_view coding = trim(item.substr(0, semicolon));
    double weight = 1;
    if (semicolon != std::string_view::npos) {
      const std::string parameter(trim(item.substr(semicolon + 1)));
      if (parameter.starts_with("q=") || parameter.starts_with("Q=")) {
        weight = std::strtod(parameter.c_str() + 2, nullptr);
      }
    }
    if (equals_ignoring_case(coding, "gzip") || equals_ignoring_case(coding, "x-gzip")) {
      gzip = weight;
    } else if (coding == "*") {
      any = weight;
    } else if (equals_ignoring_case(coding, "identity")) {
      identity = weight;
    }
    if (comma == std::string_view::npos) break;
    accept_encoding.remove_prefix(comma + 1);
  }
  if (gzip < 0) gzip = any;
  return gzip > 0 && gzip >= identity;
}

void gzip(std::string_view data, std::string& out) {
  thread_local Compressor compressor(kGzipWindow);
  compressor.run(data, Z_FINISH, out);
}

Result<std::string> decode_content(std::string_view content_encoding, std::string_view body,
                                   std::size_t max_size) {
  static constexpr std::size_t kMaxCodings = 2;
  std::vector<std::string_view> codings;
  while (!content_encoding.empty()) {
    const std::size_t comma = content_encoding.find(',');
    const std::string_view coding = trim(content_encoding.substr(0, comma));
    if (!coding.empty() && !equals_ignoring_case(coding, "identity")) codings.push_back(coding);
    if (comma == std::string_view::npos) break;
    content_encoding.remove_prefix(comma + 1);
  }
  if (codings.size() > kMaxCodings) {
    return fail(415, "Content-Encoding: at most two codings may be applied");
  }
  std::string decoded(codings.empty() ? body : std::string_view());
  // The last coding applied is the first to be undone.
  for (auto coding = codings.rbegin(); coding != codings.rend(); ++coding) {
    Result<std::string> step =
        decode_one(*coding, coding == codings.rbegin() ? body : decoded, max_size);
    if (!step) return step;
    decoded = std::move(*step);
  }
  return decoded;
}

void deflate_message(std::string_view data, std::string& out) {
  // RFC 7692, section 7.2.1: an empty stored block ends the data, and its last four bytes are left
  // out.
  static constexpr std::size_t kTail = 4;
  thread_local Compressor compressor(kRawWindow);
  compressor.run(data, Z_SYNC_FLUSH, out);
  out.resize(out.size() - kTail);
}

Result<void> inflate_message(std::string_view data, std::size_t max_size, std::string& out) {
  static constexpr std::string_view kTail("\x00\x00\xff\xff", 4);
  std::string whole(data);
  whole.append(kTail);
  switch (expand(whole, kRawWindow, max_size, false, out)) {
    case Inflation::ok:
      return {};
    case Inflation::too_large:
      return fail(
          1009, "A message expands to more than " + std::to_string(max_size) + " bytes (max-body)");
    case Inflation::incomplete:
    case Inflation::broken:
      break;
  }
  return fail(1007, "A compressed message is broken");
}

}  // namespace sluice

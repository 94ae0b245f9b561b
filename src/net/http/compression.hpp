#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"

namespace sluice {

/// Whether an Accept-Encoding value allows gzip (RFC 9110, section 12.5.3): by name or by `*`, with
/// a weight above 0 and not below that of identity.
bool accepts_gzip(std::string_view accept_encoding);

/// Bytes that are compressed at once: a longer text takes longer than others on the loop should
/// wait.
inline constexpr std::size_t kCompressedAtOnce = std::size_t{64} << 10U;
/// How many bytes of a request (WorkLimits) cost as much as to compress one.
inline constexpr std::size_t kCompressionCost = 4;

/// Bytes that come out at once; what is read counts as several.
inline constexpr std::size_t kExpandedAtOnce = std::size_t{128} << 10U;
/// How many of them cost as much as a byte of a request.
inline constexpr std::size_t kExpandedPerCost = 2;

/// Compresses `data` with gzip (RFC 1952) and appends the result to `out`. Thread-safe.
void gzip(std::string_view data, std::string& out);

/// The same in steps.
class Gzip {
 public:
  Gzip();
  ~Gzip();
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

  /// Goes on with `piece`, and appends what comes out.
  void step(std::string_view piece, bool is_last, std::string& out);

  /// About what it holds.
  static constexpr std::size_t kMemory = std::size_t{270} << 10U;

 private:
  class Stage;
  std::unique_ptr<Stage> stage_;
};

/// Undoes the Content-Encoding of one request's body - gzip, x-gzip, deflate, identity, or a list
/// of at most two of these - in steps, so that a little input that becomes much does not keep a
/// loop. Not thread-safe.
class ContentDecoder {
 public:
  /// At most `max_size` bytes may come out, of each coding.
  explicit ContentDecoder(std::size_t max_size);
  ~ContentDecoder();
  ContentDecoder(const ContentDecoder&) = delete;
  ContentDecoder& operator=(const ContentDecoder&) = delete;

  /// Whether a body of that coding can be undone. Error: 415, one that is not known here.
  static Result<void> check(std::string_view content_encoding);
  /// Errors as check().
  Result<void> begin(std::string_view content_encoding);
  /// Goes on with `body`, the whole of it each time, until about `most` has been done of what
  /// work() counts. True when it is done. Errors: 400 broken data, 413 too many bytes come out.
  Result<bool> step(std::string_view body, std::size_t most);
  /// How many bytes have come out, of each coding; what takes longer counts as more.
  [[nodiscard]] std::size_t work() const { return work_; }
  [[nodiscard]] std::size_t held_bytes() const;
  /// What has come out.
  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  class Stage;

  std::size_t max_size_;
  std::vector<std::unique_ptr<Stage>> stages_;  // what is left to be undone, the first last
  std::string in_;                              // what the stage before has made of the body
  std::string out_;
  std::size_t work_ = 0;
  bool is_first_ = true;  // the stage reads the body itself
};

/// The same at once.
Result<std::string> decode_content(std::string_view content_encoding, std::string_view body,
                                   std::size_t max_size);

/// Compresses one message for permessage-deflate (RFC 7692, section 7.2.1) without context takeover
/// and appends the payload to `out`.
void deflate_message(std::string_view data, std::string& out);

/// The reverse, of one message and in steps, so that a short one that becomes long does not keep a
/// loop. Not thread-safe.
class MessageInflater {
 public:
  /// At most `max_size` bytes may come out.
  explicit MessageInflater(std::size_t max_size);
  ~MessageInflater();
  MessageInflater(MessageInflater&& other) noexcept;
  MessageInflater& operator=(MessageInflater&&) = delete;

  /// Goes on with `payload`, the whole of it each time, until kExpandedAtOnce has been done of what
  /// work() counts. True when it is done. Errors: 1007 broken data, 1009 too many bytes come
  /// out.
  Result<bool> step(std::string_view payload);
  /// What has come out.
  [[nodiscard]] std::string_view text() const { return text_; }
  [[nodiscard]] std::string take() { return std::move(text_); }
  /// How many bytes have come out; what takes longer counts as more.
  [[nodiscard]] std::size_t work() const;
  [[nodiscard]] std::size_t held_bytes() const;

 private:
  class Stage;
  std::unique_ptr<Stage> stage_;
  std::string text_;
  std::size_t max_size_;
};

}  // namespace sluice

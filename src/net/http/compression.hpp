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

/// The most bytes that are compressed at once. More would delay others on the loop for too long.
inline constexpr std::size_t kCompressedAtOnce = std::size_t{64} << 10U;
/// What it costs to compress one byte, in units of WorkLimits.
inline constexpr std::size_t kCompressionCost = 4;

/// The most bytes of output that are expanded at once. A byte of input counts as several.
inline constexpr std::size_t kExpandedAtOnce = std::size_t{128} << 10U;
/// How many of them cost one unit of WorkLimits.
inline constexpr std::size_t kExpandedPerCost = 2;

/// Compresses `data` with gzip (RFC 1952) and appends the result to `out`. Thread-safe.
void gzip(std::string_view data, std::string& out);

/// The same in steps. Not thread-safe.
class Gzip {
 public:
  Gzip();
  ~Gzip();
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

  /// Compresses `piece`, the next part of the data, and appends the output so far to `out`.
  void step(std::string_view piece, bool is_last, std::string& out);

  /// Approximate memory of an object, in bytes.
  static constexpr std::size_t kMemory = std::size_t{270} << 10U;

 private:
  class Stage;
  std::unique_ptr<Stage> stage_;
};

/// Decodes the Content-Encoding of one request's body: gzip, x-gzip, deflate, identity, or a list
/// of at most two of these. Works in steps, so that a short body that becomes long does not occupy
/// the loop. Not thread-safe.
class ContentDecoder {
 public:
  /// Each coding may expand to at most `max_size` bytes.
  explicit ContentDecoder(std::size_t max_size);
  ~ContentDecoder();
  ContentDecoder(const ContentDecoder&) = delete;
  ContentDecoder& operator=(const ContentDecoder&) = delete;

  /// Whether a body of that coding can be decoded. Error: 415 if a coding is not known here.
  static Result<void> check(std::string_view content_encoding);
  /// Errors as check().
  Result<void> begin(std::string_view content_encoding);
  /// Continues with `body`, which must be the same whole body each time, until about `most` has
  /// been added to work(). Returns true when the body is decoded. Errors: 400 broken data, 413 too
  /// many bytes come out.
  Result<bool> step(std::string_view body, std::size_t most);
  /// The bytes of output of all codings so far, and a charge for what takes longer.
  [[nodiscard]] std::size_t work() const { return work_; }
  [[nodiscard]] std::size_t held_bytes() const;
  /// Takes the decoded body.
  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  class Stage;

  std::size_t max_size_;
  std::vector<std::unique_ptr<Stage>> stages_;  // still to be decoded; the next is the last
  std::string in_;                              // the output of the previous stage
  std::string out_;
  std::size_t work_ = 0;
  bool is_first_ = true;  // the stage reads the body itself
};

/// Decodes a whole body at once.
Result<std::string> decode_content(std::string_view content_encoding, std::string_view body,
                                   std::size_t max_size);

/// Compresses one message for permessage-deflate (RFC 7692, section 7.2.1) without context takeover
/// and appends the payload to `out`.
void deflate_message(std::string_view data, std::string& out);

/// Expands one message of permessage-deflate. Works in steps, so that a short message that becomes
/// long does not occupy the loop. Not thread-safe.
class MessageInflater {
 public:
  /// The message may expand to at most `max_size` bytes.
  explicit MessageInflater(std::size_t max_size);
  ~MessageInflater();
  MessageInflater(MessageInflater&& other) noexcept;
  MessageInflater& operator=(MessageInflater&&) = delete;

  /// Continues with `payload`, which must be the same whole payload each time, until
  /// kExpandedAtOnce has been added to work(). Returns true when the message is expanded. Errors:
  /// 1007 broken data, 1009 too many bytes come out.
  Result<bool> step(std::string_view payload);
  /// The output so far.
  [[nodiscard]] std::string_view text() const { return text_; }
  [[nodiscard]] std::string take() { return std::move(text_); }
  /// The bytes of output so far, and a charge for what takes longer.
  [[nodiscard]] std::size_t work() const;
  [[nodiscard]] std::size_t held_bytes() const;

 private:
  class Stage;
  std::unique_ptr<Stage> stage_;
  std::string text_;
  std::size_t max_size_;
};

}  // namespace sluice

#include "net/http/http_reply_parser.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/container/small_vector.hpp>

#include "core/recycling.hpp"
#include "core/release_memory.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {
namespace {

namespace http = boost::beast::http;
using boost::beast::string_view;
using boost::system::error_code;

std::string_view view(string_view text) {
  return {text.data(), text.size()};
}

/// One reply, interim or final.
class Reply final : public http::basic_parser<false> {
 public:
  Reply(HttpReplySink& sink, std::size_t max_head, bool head_request)
      : sink_(&sink), max_head_(max_head) {
    eager(true);
    skip(head_request);
    body_limit(boost::none);
    header_limit(static_cast<std::uint32_t>(
        std::min<std::size_t>(max_head, std::numeric_limits<std::uint32_t>::max())));
  }

  [[nodiscard]] bool stopped() const { return stopped_; }
  /// Whether the next byte belongs to the head of a chunk, or to the line end before it.
  [[nodiscard]] bool awaits_chunk() const {
    return is_header_done() && chunked() && chunk_rest_ == 0;
  }
  [[nodiscard]] bool is_interim() const {
    return status_ >= 100 && status_ < 200 && status_ != kSwitchingProtocols;
  }

 private:
  /// A field as positions in text_, which moves while it grows.
  struct Field {
    std::size_t name;
    std::size_t value;
    std::size_t end;
  };

  static constexpr std::size_t kFieldOverhead = 4;  // ": " and CRLF
  // What most heads need.
  static constexpr std::size_t kUsualFields = 8;
  static constexpr std::size_t kUsualText = 256;

  void stop(error_code& error) {
    stopped_ = true;
    error = http::error::end_of_stream;
  }

  void on_request_impl(http::verb, string_view, string_view, int, error_code&) override {}
  void on_response_impl(int status, string_view, int, error_code&) override { status_ = status; }
  void on_field_impl(http::field, string_view name, string_view value, error_code& error) override {
    const std::size_t start = text_.size();
    // Beast's limit holds for what it is given at once.
    if (start + name.size() + value.size() + fields_.size() * kFieldOverhead > max_head_) {
      error = http::error::header_limit;
      return;
    }
    if (fields_.empty()) {
      fields_.reserve(kUsualFields);
      text_.reserve(kUsualText);
    }
    text_.append(view(name)).append(view(value));
    fields_.push_back({start, start + name.size(), text_.size()});
  }
  void on_header_impl(error_code& error) override {
    if (is_interim()) return;
    const std::string_view text = text_;
    boost::container::small_vector<HeaderField, kUsualFields> headers;
    headers.reserve(fields_.size());
    for (const Field& field : fields_) {
      headers.push_back({.name = text.substr(field.name, field.value - field.name),
                         .value = text.substr(field.value, field.end - field.value)});
    }
    if (!sink_->on_head(status_, {headers.data(), headers.size()})) stop(error);
    release_memory(fields_);
    release_memory(text_);
  }
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(string_view body, error_code& error) override {
    if (!sink_->on_body(view(body))) stop(error);
    return body.size();
  }
  void on_chunk_header_impl(std::uint64_t size, string_view, error_code&) override {
    chunk_rest_ = size;
  }
  std::size_t on_chunk_body_impl(std::uint64_t, string_view body, error_code& error) override {
    chunk_rest_ -= body.size();
    return on_body_impl(body, error);
  }
  void on_finish_impl(error_code&) override {}

  HttpReplySink* sink_;
  std::size_t max_head_;
  std::string text_;
  std::vector<Field> fields_;
  std::uint64_t chunk_rest_ = 0;  // bytes of the chunk that have not arrived
  int status_ = 0;
  bool stopped_ = false;
};

}  // namespace

class HttpReplyParser::Impl : public Recycled {
 public:
  Impl(HttpReplySink& sink, std::size_t max_head, bool head_request)
      : sink_(&sink), max_head_(max_head), head_request_(head_request) {
    begin();
  }

  Result<void> feed(std::string_view bytes) {
    if (!pending_.empty()) {
      joined_ = std::exchange(pending_, {}).append(bytes);
      bytes = joined_;
    }
    while (!bytes.empty() && !reply_->is_done()) {
      if (!has_begun_ && !begins(bytes)) return broken("it does not begin with HTTP/1");
      if (reply_->awaits_chunk() && bytes.size() < kLastChunk.size()) break;
      error_code error;
      const std::size_t used = reply_->put(boost::asio::buffer(bytes.data(), bytes.size()), error);
      bytes.remove_prefix(used);
      if (reply_->stopped()) return {};
      if (error && error != http::error::need_more) return broken(error.message());
      if (reply_->is_done() && reply_->is_interim()) {
        if (++interim_ > kMaxInterim) return broken("too many interim replies");
        begin();
        continue;
      }
      if (error == http::error::need_more || used == 0) break;
    }
    pending_ = bytes;
    if (pending_.size() > max_head_ && !reply_->is_done()) return broken("a head without an end");
    return {};
  }

  Result<void> end() {
    if (reply_->is_done()) return {};
    error_code error;
    if (reply_->got_some()) reply_->put_eof(error);
    if (error || !reply_->is_done()) return fail(502, "The server closed the connection early");
    return {};
  }

  [[nodiscard]] bool done() const { return reply_->is_done(); }
  [[nodiscard]] bool keep_alive() const { return reply_->keep_alive(); }
  [[nodiscard]] std::string_view rest() const { return pending_; }

 private:
  static constexpr int kMaxInterim = 16;
  /// When Beast has seen part of a last chunk, it asserts that it is given at least this many
  /// bytes.
  static constexpr std::string_view kLastChunk = "0\r\n\r\n";

  void begin() {
    reply_.emplace(*sink_, max_head_, head_request_);
    has_begun_ = false;
  }
  /// Whether `bytes` may be the beginning of a reply. Beast may wait for the end of a head that is
  /// none.
  bool begins(std::string_view bytes) {
    static constexpr std::string_view kBeginning = "HTTP/1.";
    has_begun_ = bytes.size() >= kBeginning.size();
    return kBeginning.starts_with(bytes.substr(0, kBeginning.size()));
  }
  static Result<void> broken(const std::string& why) {
    return fail(502, "The server's reply is not valid HTTP: " + why);
  }

  HttpReplySink* sink_;
  std::size_t max_head_;
  bool head_request_;
  std::optional<Reply> reply_;
  bool has_begun_ = false;  // as a reply must
  std::string pending_;     // not parsed yet, or after the reply
  std::string joined_;
  int interim_ = 0;
};

HttpReplyParser::HttpReplyParser(HttpReplySink& sink, std::size_t max_head, bool head_request)
    : impl_(std::make_unique<Impl>(sink, max_head, head_request)) {}
HttpReplyParser::~HttpReplyParser() = default;
Result<void> HttpReplyParser::feed(std::string_view bytes) {
  return impl_->feed(bytes);
}
Result<void> HttpReplyParser::end() {
  return impl_->end();
}
bool HttpReplyParser::done() const {
  return impl_->done();
}
bool HttpReplyParser::keep_alive() const {
  return impl_->keep_alive();
}
std::string_view HttpReplyParser::rest() const {
  return impl_->rest();
}

}  // namespace sluice

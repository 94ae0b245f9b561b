// The parser of HTTP replies: any split of the bytes gives the same reply.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "net/http/http_reply_parser.hpp"
#include "require.hpp"

namespace {

using namespace sluice;

constexpr std::size_t kMaxHead = 2048;

struct Reply final : HttpReplySink {
  bool on_head(int status, std::span<const HeaderField> headers) override {
    require(!head_seen);
    head_seen = true;
    head = std::to_string(status);
    for (const HeaderField& field : headers) {
      head.append("\n").append(field.name).append(":").append(field.value);
    }
    return true;
  }
  bool on_body(std::string_view bytes) override {
    require(head_seen);
    body.append(bytes);
    return true;
  }

  bool head_seen = false;
  std::string head;
  std::string body;
  std::string rest;
  bool done = false;
  bool keep_alive = false;
};

/// Feeds `bytes` in pieces until the reply is complete or malformed.
Reply read(std::string_view bytes, std::size_t step, bool head_request) {
  Reply reply;
  HttpReplyParser parser(reply, kMaxHead, head_request);
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    if (!parser.feed(bytes.substr(at, step))) return reply;
    if (!parser.done()) continue;
    reply.rest = std::string(parser.rest()).append(bytes.substr(std::min(at + step, bytes.size())));
    reply.keep_alive = parser.keep_alive();
    break;
  }
  reply.done = parser.end().has_value();
  return reply;
}

}  // namespace

/// The first byte says whether the request was HEAD, the second the size of the pieces.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const bool head_request = (data[0] & 1U) != 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const Reply whole = read(bytes, bytes.size() + 1, head_request);
  const Reply pieces = read(bytes, 1U + data[1] % 64U, head_request);
  // An error in the bytes after a head may be found before or after the head is reported.
  require(whole.done == pieces.done);
  if (!whole.done) return 0;
  require(whole.head == pieces.head);
  require(whole.body == pieces.body);
  require(whole.rest == pieces.rest);
  require(whole.keep_alive == pieces.keep_alive);
  return 0;
}

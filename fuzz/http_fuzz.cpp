#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "net/http/http_parser.hpp"
#include "require.hpp"

namespace {

using namespace sluice;

bool is_inside(std::string_view part, std::string_view whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

/// A body that is read from `first` and then `second`: its content, whether it is complete, or the
/// error.
struct Body {
  std::string text;
  bool is_whole = false;
  int error = 0;
  bool operator==(const Body&) const = default;
};

Body read_body(std::string_view first, std::string_view second) {
  BodyReader reader(1000);
  for (const std::string_view piece : {first, second}) {
    const Result<std::size_t> used = reader.feed(piece);
    if (!used) return {.text = {}, .is_whole = false, .error = used.error().code};
    require(*used == piece.size() || reader.done());
  }
  require(reader.body().size() <= 1000);
  return {.text = reader.body(), .is_whole = reader.done(), .error = 0};
}

}  // namespace

/// The first two bytes say where the input is split. A split must change nothing.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::size_t cut = (data[0] * 256U + data[1]) % (input.size() + 1);

  HttpHeadParser parser({.header_bytes = 2000, .headers = 20, .uri = 500, .body = 1000});
  bool found = false;
  HttpRequestHead head;
  const Result<void> parsed = parser.parse(input, found, head);
  if (!parsed) {
    require(parsed.error().code >= 400 && parsed.error().code < 600);
    require(!parsed.error().message.empty());
    return 0;
  }
  if (!found) return 0;
  require(head.size <= input.size() && input.substr(0, head.size).ends_with("\r\n\r\n"));
  require(head.request.headers.size() <= 20 && head.content_length <= 1000);
  require(is_inside(head.request.query, input));
  for (const HeaderField& field : head.request.headers) {
    require(is_inside(field.name, input) && is_inside(field.value, input));
    require(field.value.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos);
    require(head.request.header(field.name).data() != nullptr);
  }
  const std::size_t whole_size = head.size;
  const BodyFraming framing = head.framing;

  const Result<void> part = parser.parse(input.substr(0, cut), found, head);
  if (cut >= whole_size) {
    require(part && found && head.size == whole_size && head.framing == framing);
  } else {
    require(part && !found);
  }
  if (framing == BodyFraming::chunked) {
    const std::string_view body = input.substr(whole_size);
    const std::size_t body_cut = cut % (body.size() + 1);
    require(read_body(body, {}) == read_body(body.substr(0, body_cut), body.substr(body_cut)));
  }
  return 0;
}

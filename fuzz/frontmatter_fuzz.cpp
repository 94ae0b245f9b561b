// The frontmatter of a document. Accepted text gives JSON that survives a round trip. Refused text
// gives an error that names the faulty line.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/text/utf8.hpp"
#include "protocol/syntax/frontmatter.hpp"
#include "require.hpp"

using namespace sluice;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<json::object> read = parse_frontmatter(text);
  if (!read) {
    require(read.error().message.starts_with("frontmatter, line "));
    return 0;
  }
  const std::string written = to_json(*read);
  require(is_valid_utf8(written));
  const Result<json::value> again = parse_json(written);
  require(again && to_json(*again) == written);
  return 0;
}

// Values of header fields: whatever is encoded is decoded unchanged, and can stand in a header.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/mirrored_headers.hpp"
#include "require.hpp"

using namespace sluice;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view value(reinterpret_cast<const char*>(data), size);
  const std::string encoded = encode_header_value(value);
  require(std::ranges::all_of(encoded, [](char c) { return (c >= ' ' && c <= '~') || c == '\t'; }));
  require(decode_header_value(encoded) == value);
  if (const std::optional<std::string> decoded = decode_header_value(value)) {
    require(decode_header_value(encode_header_value(*decoded)) == decoded);
  }
  return 0;
}

// Batches are split exactly where the JSON parser sees their elements. Each piece is the JSON text
// of its element, and no batch exceeds its limit.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "require.hpp"
#include "rpc/error_codes.hpp"
#include "rpc/message.hpp"

namespace {

using namespace sluice;

constexpr std::size_t kMax = 16;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  MessageParser parser;
  const auto batch = parser.parse_batch(text, kMax);
  const Result<json::value> whole = parse_json(text);
  if (!batch) {
    require(batch.error().error.code == kParseError || batch.error().error.code == kInvalidRequest);
    require(!whole || !whole->is_array() || whole->get_array().empty() ||
            whole->get_array().size() > kMax);
    return 0;
  }
  require(is_batch(text));
  require(whole && whole->is_array() && whole->get_array().size() == batch->size());
  for (std::size_t i = 0; i < batch->size(); ++i) {
    const Result<json::value> element = parse_json((*batch)[i]);
    require(element && *element == whole->get_array()[i]);
    // Whatever an element is, the parser reports it and can then parse the next one.
    static_cast<void>(parser.parse((*batch)[i]));
  }
  return 0;
}

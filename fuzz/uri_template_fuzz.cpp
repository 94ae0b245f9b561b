// URI templates. For any template and any URI, matching ends soon and gives no variable that the
// template does not have.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/text/utf8.hpp"
#include "protocol/syntax/uri_template.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t split = input.find('\n');
  const Result<UriTemplate> made = UriTemplate::parse(input.substr(0, split));
  if (!made || split == std::string_view::npos) return 0;
  std::size_t steps = 0;
  if (const auto found = made->match(input.substr(split + 1), steps)) {
    for (const auto& [name, value] : *found) {
      if (!made->has_variable(name) || !is_valid_utf8(value)) std::abort();
    }
  }
  return 0;
}

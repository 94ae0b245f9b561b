#include "cli/targets/named_values.hpp"

#include <algorithm>

#include "cli/options/exit_code.hpp"
#include "core/text/text.hpp"

namespace sluice {

Result<NamedValues> split_named_values(const std::vector<std::string>& texts, char separator,
                                       std::string_view form) {
  NamedValues out;
  for (const std::string& text : texts) {
    const auto at = text.find(separator);
    const std::string_view name = trim(std::string_view(text).substr(0, at));
    if (at == std::string::npos || name.empty() || !std::ranges::all_of(name, is_token_char)) {
      return fail(kExitUsage, "give " + std::string(form));
    }
    out.emplace_back(name, trim(std::string_view(text).substr(at + 1)));
  }
  return out;
}

}  // namespace sluice

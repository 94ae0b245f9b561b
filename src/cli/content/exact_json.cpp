#include "cli/content/exact_json.hpp"

#include <string>
#include <utility>

#include "cli/options/exit_code.hpp"
#include "json/exact_numbers.hpp"

namespace sluice {

Result<json::value> exact_json(std::string_view text) {
  auto parsed = parse_json(text);
  if (!parsed) return parsed;
  const std::string_view why = inexact_number_in(text);
  return why.empty() ? std::move(parsed) : fail(kExitUsage, std::string(why));
}

}  // namespace sluice

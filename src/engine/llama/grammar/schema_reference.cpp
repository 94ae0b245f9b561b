#include "engine/llama/grammar/schema_reference.hpp"

#include <optional>
#include <string>

#include "core/text/percent_encoding.hpp"
#include "json/path.hpp"

namespace sluice {

const json::value* resolve_reference(const json::value& root, std::string_view reference) {
  if (!reference.starts_with('#')) return nullptr;
  const std::optional<std::string> pointer = percent_decode(reference.substr(1));
  if (!pointer || !(pointer->empty() || pointer->starts_with('/'))) return nullptr;
  const json::value* target = &root;
  std::string_view rest = *pointer;
  while (target != nullptr && !rest.empty()) {
    rest.remove_prefix(1);
    const std::string_view token = rest.substr(0, rest.find('/'));
    rest.remove_prefix(token.size());
    target = find_pointer_token(*target, token);
  }
  return target;
}

}  // namespace sluice

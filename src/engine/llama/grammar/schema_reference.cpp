#include "engine/llama/grammar/schema_reference.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace sluice {

const json::value* resolve_reference(const json::value& root, std::string_view reference) {
  if (!reference.starts_with("#/")) return nullptr;
  reference.remove_prefix(2);
  const json::value* target = &root;
  while (target != nullptr) {
    const std::size_t end = std::min(reference.find('/'), reference.size());
    const std::string_view step = reference.substr(0, end);
    if (const json::object* const object = target->if_object()) {
      target = object->if_contains(step);
    } else if (const json::array* const array = target->if_array()) {
      std::size_t index = array->size();
      std::from_chars(step.data(), step.data() + step.size(), index);
      target = index < array->size() ? &(*array)[index] : nullptr;
    } else {
      target = nullptr;
    }
    if (end == reference.size()) break;
    reference.remove_prefix(end + 1);
  }
  return target;
}

}  // namespace sluice

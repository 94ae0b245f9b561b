#include "json/mask.hpp"

#include <cstddef>
#include <utility>

namespace sluice {

void mask_in(json::value& value, const SecretMask& mask) {
  if (value.is_string()) {
    value = mask.masked(std::string(value.get_string()));
  } else if (value.is_number()) {
    std::string number = to_json(value);
    if (mask.masked(number) != number) value = kMask;
  } else if (value.is_array()) {
    for (json::value& each : value.get_array()) mask_in(each, mask);
  } else if (value.is_object()) {
    json::object masked;
    std::size_t same = 1;  // so many names were the same without secrets
    for (auto& [name, member] : value.get_object()) {
      mask_in(member, mask);
      const std::string shown = mask.masked(std::string(name));
      std::string unique = shown;
      while (masked.contains(unique)) unique = shown + std::to_string(++same);
      masked.emplace(unique, std::move(member));
    }
    value = std::move(masked);
  }
}

std::string masked_json(std::string_view text, const SecretMask& mask) {
  if (mask.empty()) return std::string(text);
  std::string shown = mask.masked(std::string(text));
  const Result<json::value> parsed = parse_json(text);
  if (!parsed) return shown;
  json::value masked = *parsed;
  mask_in(masked, mask);
  // What has none stays as it was written.
  return masked == *parsed ? shown : to_json(masked);
}

}  // namespace sluice

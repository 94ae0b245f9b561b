#pragma once

#include <string_view>

#include "json/json.hpp"

namespace sluice {

/// The member `name` if it is a string; otherwise an empty view.
inline std::string_view text_at(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  return value == nullptr || !value->is_string() ? std::string_view() : value->get_string();
}

/// The member `name` if it is an object; otherwise null.
inline const json::object* object_at(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  return value == nullptr ? nullptr : value->if_object();
}

}  // namespace sluice

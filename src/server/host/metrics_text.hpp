#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/text/json_escape.hpp"

namespace sluice {

/// Appends one metric without labels in Prometheus' text format.
inline void append_metric(std::string& out, std::string_view name, std::string_view type,
                          std::string_view help, std::uint64_t value) {
  out.append("# HELP ").append(name).append(" ").append(help).append("\n");
  out.append("# TYPE ").append(name).append(" ").append(type).append("\n");
  out.append(name).append(" ");
  append_number(out, value);
  out.push_back('\n');
}

}  // namespace sluice

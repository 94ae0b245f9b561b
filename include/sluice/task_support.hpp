#pragma once

#include <cstdint>

namespace sluice {

/// Whether calls of a tool can become tasks (2025-11-25, Tools, Execution; SEP-2663).
enum class TaskSupport : std::uint8_t {
  forbidden,  // never
  optional,   // for clients that support tasks; for others a call runs within its request
  required,   // always; clients that do not support tasks cannot call the tool
};

}  // namespace sluice

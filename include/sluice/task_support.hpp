#pragma once

#include <cstdint>

namespace sluice {

/// Whether calls of a tool can go on as tasks (2025-11-25, Tools, Execution; SEP-2663).
enum class TaskSupport : std::uint8_t {
  forbidden,
  optional,  // for clients that know tasks
  required,  // others cannot call it
};

}  // namespace sluice

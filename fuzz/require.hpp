#pragma once

#include <cstdio>
#include <cstdlib>
#include <source_location>

namespace sluice {

/// Aborts the fuzz target, which reports a finding, if an invariant does not hold.
inline void require(bool condition, std::source_location where = std::source_location::current()) {
  if (condition) return;
  std::fprintf(stderr, "line %u does not hold\n", where.line());
  std::abort();
}

}  // namespace sluice

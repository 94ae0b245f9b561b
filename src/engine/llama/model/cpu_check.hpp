#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/error.hpp"

namespace sluice {

/// A set of CPU instructions that llama.cpp may have been compiled with.
struct CpuFeature {
  std::string_view name;
  bool built = false;  // the program contains them
  bool here = false;   // this CPU supports them
};

/// The instruction sets that differ between CPUs of one architecture. Executes none of them.
std::vector<CpuFeature> cpu_features();

/// Returns an error with a ModelFault if the program contains instructions that this CPU does not
/// support.
Result<void> check_cpu(std::span<const CpuFeature> features);

}  // namespace sluice

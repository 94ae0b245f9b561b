#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/error.hpp"

namespace sluice {

/// Instructions of the CPU that llama.cpp may have been compiled with.
struct CpuFeature {
  std::string_view name;
  bool built = false;  // they are in the program
  bool here = false;   // this CPU knows them
};

/// Those that make a difference between the CPUs of one architecture. Runs none of them.
std::vector<CpuFeature> cpu_features();

/// An error, with a ModelFault, if the program contains what this CPU would stop it for.
Result<void> check_cpu(std::span<const CpuFeature> features);

}  // namespace sluice

#pragma once

#include <string_view>

#include "core/error.hpp"

namespace sluice {

/// Checks the value of --revision; empty is none. Error: kExitUsage, which names the revisions.
Result<void> check_revision(std::string_view name);

}  // namespace sluice

#pragma once

#include <expected>
#include <string>

#include "core/error.hpp"

namespace sluice {

/// Makes the error for a caller that has reached a limit, and also logs it, though not each time.
std::unexpected<Error> over_limit(std::string message, int code = kLimitReached);

}  // namespace sluice

#include "core/log/over_limit.hpp"

#include <string_view>
#include <utility>

#include "core/log/log.hpp"
#include "core/log/log_limit.hpp"

namespace sluice {

std::unexpected<Error> over_limit(std::string message, int code) {
  static LogLimit limit;
  if (const auto left_out = limit.take()) {
    log_warning("a limit was reached",
                {{"told", std::string_view(message)}, {"left_out", *left_out}});
  }
  return fail(code, std::move(message));
}

}  // namespace sluice

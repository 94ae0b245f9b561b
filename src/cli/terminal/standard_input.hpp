#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace sluice {

/// Reads `fd` to its end, however long that takes. Malformed UTF-8 becomes U+FFFD, because a
/// request is JSON. `on_wait` is called once if nothing arrives for some seconds. Input beyond
/// `limit` bytes is an error; `what` is what it is for, such as "a question". So is an interrupt,
/// where those are pollable (Interrupts). Errors carry an exit code of the program.
Result<std::string> read_input(int fd, std::size_t limit, std::string_view what,
                               const std::function<void()>& on_wait);

}  // namespace sluice

#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace sluice {

/// The most bytes of standard input that become a part of a question.
inline constexpr std::size_t kMaxInput = std::size_t{4} << 20U;

/// Reads `fd` to its end, however long that takes. Malformed UTF-8 becomes U+FFFD, because a
/// request is JSON. `on_wait` is called once if nothing arrives for some seconds. Input beyond
/// `limit` bytes is an error. Errors carry an exit code of the program.
Result<std::string> read_input(int fd, std::size_t limit, const std::function<void()>& on_wait);

/// Joins the prompt of the command line and the text of a pipe, with an empty line between them.
/// Either may be missing. Returns an empty text if both have nothing but white space.
std::string join_question(std::string_view prompt, std::string_view input);

}  // namespace sluice

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice {

/// The most bytes of standard input that become a part of a question.
inline constexpr std::size_t kMaxInput = std::size_t{4} << 20U;

/// Joins the prompt of the command line and the text of a pipe, with an empty line between them.
/// Either may be missing. Returns an empty text if both have nothing but white space.
std::string join_question(std::string_view prompt, std::string_view input);

}  // namespace sluice

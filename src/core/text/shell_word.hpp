#pragma once

#include <string>
#include <string_view>

namespace sluice {

/// `text` as one word of a POSIX shell, whatever is in it (POSIX.1-2024, Shell Command Language,
/// section 2.2.2). It stays as it is if it has no need of quotes.
std::string shell_word(std::string_view text);

}  // namespace sluice

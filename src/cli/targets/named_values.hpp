#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/targets/server_config.hpp"
#include "core/error.hpp"

namespace sluice {

/// NAME and VALUE of texts with a separator between them, such as "Name: value". A name is a token
/// (RFC 9110, section 5.6.2). Errors carry kExitUsage, say that the `form` is expected, and do not
/// repeat the value, which may be secret.
Result<NamedValues> split_named_values(const std::vector<std::string>& texts, char separator,
                                       std::string_view form);

}  // namespace sluice

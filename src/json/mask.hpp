#pragma once

#include "core/text/secrets.hpp"
#include "json/json.hpp"

namespace sluice {

/// Masks secrets in the strings, numbers and names of a value. As deep as the parser lets values
/// be.
void mask_in(json::value& value, const SecretMask& mask);

/// `text` without secrets. If it is JSON, they are found however its strings are escaped.
std::string masked_json(std::string_view text, const SecretMask& mask);

}  // namespace sluice

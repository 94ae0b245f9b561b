#pragma once

#include <string>
#include <string_view>

namespace sluice {

/// The 32 bytes of SHA-256 (FIPS 180-4). Thread-safe.
std::string sha256(std::string_view bytes);
/// The same in 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace sluice

#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace sluice {

/// Fills `out` from the system's CSPRNG (getrandom). Thread-safe. Throws std::system_error if the
/// kernel has no randomness to give, which does not happen after boot.
void random_bytes(std::span<std::byte> out);

/// `length` characters, each uniform in [a-z0-9], from the CSPRNG.
std::string random_id(std::size_t length);

/// Compares without revealing by its timing where the first difference is. Lengths are not secret.
bool constant_time_equal(std::string_view a, std::string_view b);

}  // namespace sluice

#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace sluice {

/// Fills `out` from the system's CSPRNG (getrandom). Thread-safe. Throws std::system_error if the
/// kernel cannot provide randomness, which does not happen after boot.
void random_bytes(std::span<std::byte> out);

/// `length` characters from the CSPRNG, each uniformly distributed over [a-z0-9].
std::string random_id(std::size_t length);

/// Whether `a` and `b` are equal. The time taken does not reveal where they differ. Their lengths
/// are not treated as secret.
bool constant_time_equal(std::string_view a, std::string_view b);

}  // namespace sluice

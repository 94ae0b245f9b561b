#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace sluice {

using SipHashKey = std::array<std::uint64_t, 2>;

/// SipHash-2-4 (Aumasson and Bernstein, 2012). Nobody can choose texts that collide without knowing
/// the key. `key` holds the 16 bytes of the paper's key as two little-endian words.
std::uint64_t siphash(const SipHashKey& key, std::string_view text) noexcept;

}  // namespace sluice

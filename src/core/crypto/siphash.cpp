#include "core/crypto/siphash.hpp"

#include <bit>
#include <cstddef>
#include <cstring>

namespace sluice {
namespace {

static_assert(std::endian::native == std::endian::little);

struct SipState {
  std::uint64_t v0, v1, v2, v3;

  void round() noexcept {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }

  void take(std::uint64_t word) noexcept {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }
};

}  // namespace

std::uint64_t siphash(const SipHashKey& key, std::string_view text) noexcept {
  SipState state{key[0] ^ 0x736f6d6570736575U, key[1] ^ 0x646f72616e646f6dU,
                 key[0] ^ 0x6c7967656e657261U, key[1] ^ 0x7465646279746573U};
  // The last word holds the rest of the text and, in its top byte, the length.
  std::uint64_t last = std::uint64_t{text.size()} << 56U;
  while (text.size() >= sizeof last) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data(), sizeof word);
    state.take(word);
    text.remove_prefix(sizeof word);
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    last |= std::uint64_t{static_cast<unsigned char>(text[i])} << 8U * i;
  }
  state.take(last);
  state.v2 ^= 0xFF;
  for (int i = 0; i < 4; ++i) state.round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace sluice

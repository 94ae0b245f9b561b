#include "core/crypto/random.hpp"

#include <array>
#include <cerrno>
#include <openssl/crypto.h>
#include <sys/random.h>
#include <system_error>

namespace sluice {

void random_bytes(std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t got = ::getrandom(out.data(), out.size(), 0);
    if (got < 0) {
      if (errno == EINTR) continue;
      throw std::system_error(errno, std::generic_category(), "getrandom");
    }
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

std::string random_id(std::size_t length) {
  static constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789";
  // Bytes of 252 = 7 * 36 and above are skipped, because they would make the first characters more
  // likely than the others.
  static constexpr unsigned kUniform = 252;
  std::string id;
  id.reserve(length);
  std::array<std::byte, 32> pool{};
  while (id.size() < length) {
    random_bytes(pool);
    for (const std::byte byte : pool) {
      const unsigned value = std::to_integer<unsigned>(byte);
      if (value < kUniform && id.size() < length) id.push_back(kAlphabet[value % kAlphabet.size()]);
    }
  }
  return id;
}

bool constant_time_equal(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace sluice

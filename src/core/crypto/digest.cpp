#include "core/crypto/digest.hpp"

#include <openssl/sha.h>

namespace sluice {

std::string sha256(std::string_view bytes) {
  std::string out(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
         reinterpret_cast<unsigned char*>(out.data()));
  return out;
}

std::string sha256_hex(std::string_view bytes) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char each : sha256(bytes)) {
    const auto byte = static_cast<unsigned char>(each);
    out.append({kDigits[byte >> 4U], kDigits[byte & 0xFU]});
  }
  return out;
}

}  // namespace sluice

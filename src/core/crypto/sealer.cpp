#include "core/crypto/sealer.hpp"

#include <memory>
#include <openssl/evp.h>
#include <span>
#include <stdexcept>
#include <utility>

#include "core/crypto/random.hpp"
#include "core/text/base64.hpp"

namespace sluice {
namespace {

constexpr std::size_t kNonceBytes = 12;
constexpr std::size_t kTagBytes = 16;
constexpr std::size_t kMaxText = std::size_t{64} << 20U;

struct FreeCipher {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using Cipher = std::unique_ptr<EVP_CIPHER_CTX, FreeCipher>;

unsigned char* bytes(std::string& text) {
  return reinterpret_cast<unsigned char*>(text.data());
}
const unsigned char* bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

void check(int result) {
  if (result != 1) throw std::runtime_error("OpenSSL cannot encrypt with AES-256-GCM");
}

}  // namespace

Sealer::Sealer(std::vector<Key> keys) : keys_(std::move(keys)) {
  if (!keys_.empty()) return;
  random_bytes(std::as_writable_bytes(std::span(keys_.emplace_back())));
}

std::string Sealer::seal(std::string_view text, std::string_view purpose) const {
  if (text.size() > kMaxText || purpose.size() > kMaxText) {
    throw std::length_error("the text is too large to seal");
  }
  std::string sealed(kNonceBytes + text.size() + kTagBytes, '\0');
  random_bytes(std::as_writable_bytes(std::span(sealed).first(kNonceBytes)));
  unsigned char* const nonce = bytes(sealed);
  unsigned char* const body = nonce + kNonceBytes;
  const Cipher cipher(EVP_CIPHER_CTX_new());
  int length = 0;
  check(EVP_EncryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, keys_.front().data(), nonce));
  check(EVP_EncryptUpdate(cipher.get(), nullptr, &length, bytes(purpose),
                          static_cast<int>(purpose.size())));
  check(EVP_EncryptUpdate(cipher.get(), body, &length, bytes(text), static_cast<int>(text.size())));
  check(EVP_EncryptFinal_ex(cipher.get(), body + length, &length));
  check(EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, static_cast<int>(kTagBytes),
                            body + text.size()));
  std::string out;
  append_base64(out, sealed);
  return out;
}

std::optional<std::string> Sealer::open(std::string_view sealed, std::string_view purpose) const {
  std::optional<std::string> raw = decode_base64(sealed);
  if (!raw || raw->size() < kNonceBytes + kTagBytes || raw->size() > kMaxText) return std::nullopt;
  const std::size_t size = raw->size() - kNonceBytes - kTagBytes;
  const unsigned char* const nonce = bytes(*raw);
  std::string text(size, '\0');
  for (const Key& key : keys_) {
    const Cipher cipher(EVP_CIPHER_CTX_new());
    int length = 0;
    check(EVP_DecryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, key.data(), nonce));
    check(EVP_DecryptUpdate(cipher.get(), nullptr, &length, bytes(purpose),
                            static_cast<int>(purpose.size())));
    check(EVP_DecryptUpdate(cipher.get(), bytes(text), &length, nonce + kNonceBytes,
                            static_cast<int>(size)));
    check(EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, static_cast<int>(kTagBytes),
                              bytes(*raw) + kNonceBytes + size));
    if (EVP_DecryptFinal_ex(cipher.get(), bytes(text) + length, &length) == 1) return text;
  }
  return std::nullopt;
}

}  // namespace sluice

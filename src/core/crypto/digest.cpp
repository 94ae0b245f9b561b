#include "core/crypto/digest.hpp"

#include <array>
#include <new>
#include <openssl/evp.h>
#include <openssl/sha.h>

#include "core/text/text.hpp"

namespace sluice {

std::string sha256(std::string_view bytes) {
  std::string out(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
         reinterpret_cast<unsigned char*>(out.data()));
  return out;
}

std::string sha256_hex(std::string_view bytes) {
  return to_hex(sha256(bytes));
}

void Sha256::Free::operator()(evp_md_ctx_st* context) const {
  EVP_MD_CTX_free(context);
}

Sha256::Context Sha256::make() {
  Context context(EVP_MD_CTX_new());
  if (context == nullptr) throw std::bad_alloc();
  return context;
}

// The functions fail only if memory runs out.

Sha256::Sha256() {
  if (EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1) throw std::bad_alloc();
}

void Sha256::add(std::string_view bytes) {
  if (EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) != 1) throw std::bad_alloc();
}

std::string Sha256::hex() const {
  const Context copy = make();
  std::array<unsigned char, SHA256_DIGEST_LENGTH> out{};
  if (EVP_MD_CTX_copy_ex(copy.get(), context_.get()) != 1 ||
      EVP_DigestFinal_ex(copy.get(), out.data(), nullptr) != 1) {
    throw std::bad_alloc();
  }
  return to_hex({reinterpret_cast<const char*>(out.data()), out.size()});
}

}  // namespace sluice

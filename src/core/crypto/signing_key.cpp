#include "core/crypto/signing_key.hpp"

#include <array>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdexcept>
#include <utility>

#include "core/text/base64.hpp"

namespace sluice {
namespace {

constexpr int kLeastRsaBits = 2048;
constexpr std::size_t kMaxPem = std::size_t{64} << 10U;

template <auto Free>
struct FreeWith {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Bio = std::unique_ptr<BIO, FreeWith<BIO_free>>;
using Digest = std::unique_ptr<EVP_MD_CTX, FreeWith<EVP_MD_CTX_free>>;
using Number = std::unique_ptr<BIGNUM, FreeWith<BN_free>>;
using EcdsaSignature = std::unique_ptr<ECDSA_SIG, FreeWith<ECDSA_SIG_free>>;

void require_success(bool succeeded) {
  if (!succeeded) throw std::runtime_error("OpenSSL cannot sign");
}

std::string to_bytes(const BIGNUM* number, int size) {
  std::string out(static_cast<std::size_t>(size), '\0');
  require_success(BN_bn2binpad(number, reinterpret_cast<unsigned char*>(out.data()), size) == size);
  return out;
}

/// A number of the public key, as JWKs have it.
std::string parameter(EVP_PKEY* key, const char* name, int size) {
  BIGNUM* raw = nullptr;
  require_success(EVP_PKEY_get_bn_param(key, name, &raw) == 1);
  const Number number(raw);
  return to_base64url(to_bytes(number.get(), size == 0 ? BN_num_bytes(number.get()) : size));
}

/// The bytes of a coordinate of a curve.
int coordinate_size(std::string_view algorithm) {
  return algorithm == "ES384" ? 48 : 32;
}

}  // namespace

std::optional<SigningKey> SigningKey::of(std::shared_ptr<EVP_PKEY> key) {
  if (key == nullptr) return std::nullopt;
  if (EVP_PKEY_is_a(key.get(), "ED25519") == 1) return SigningKey(std::move(key), "EdDSA");
  if (EVP_PKEY_is_a(key.get(), "RSA") == 1) {
    if (EVP_PKEY_get_bits(key.get()) < kLeastRsaBits) return std::nullopt;
    return SigningKey(std::move(key), "RS256");
  }
  std::array<char, 64> group{};
  std::size_t size = 0;
  if (EVP_PKEY_is_a(key.get(), "EC") != 1 ||
      EVP_PKEY_get_group_name(key.get(), group.data(), group.size(), &size) != 1) {
    return std::nullopt;
  }
  const std::string_view name(group.data(), size);
  if (name == "prime256v1" || name == "P-256") return SigningKey(std::move(key), "ES256");
  if (name == "secp384r1" || name == "P-384") return SigningKey(std::move(key), "ES384");
  return std::nullopt;
}

SigningKey SigningKey::generate() {
  std::optional<SigningKey> key = of({EVP_EC_gen("P-256"), FreeWith<EVP_PKEY_free>()});
  require_success(key.has_value());
  return *std::move(key);
}

std::optional<SigningKey> SigningKey::from_pem(std::string_view pem) {
  if (pem.size() > kMaxPem) return std::nullopt;
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  // Without a function that gives a password, OpenSSL would ask on the terminal.
  const auto no_password = [](char*, int, int, void*) { return 0; };
  return of({PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr),
             FreeWith<EVP_PKEY_free>()});
}

std::string SigningKey::sign(std::string_view text) const {
  const Digest digest(EVP_MD_CTX_new());
  const EVP_MD* const hash = algorithm_ == "EdDSA"   ? nullptr
                             : algorithm_ == "ES384" ? EVP_sha384()
                                                     : EVP_sha256();
  require_success(EVP_DigestSignInit(digest.get(), nullptr, hash, nullptr, key_.get()) == 1);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  std::size_t size = 0;
  require_success(EVP_DigestSign(digest.get(), nullptr, &size, bytes, text.size()) == 1);
  std::string out(size, '\0');
  auto* const to = reinterpret_cast<unsigned char*>(out.data());
  require_success(EVP_DigestSign(digest.get(), to, &size, bytes, text.size()) == 1);
  out.resize(size);
  if (!algorithm_.starts_with("ES")) return out;
  // OpenSSL writes the two numbers as ASN.1; JWS has them side by side (RFC 7518, section 3.4).
  const unsigned char* at = to;
  const EcdsaSignature pair(d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(size)));
  require_success(pair != nullptr);
  const int half = coordinate_size(algorithm_);
  return to_bytes(ECDSA_SIG_get0_r(pair.get()), half) +
         to_bytes(ECDSA_SIG_get0_s(pair.get()), half);
}

std::string SigningKey::public_jwk() const {
  if (algorithm_ == "RS256") {
    return R"({"e":")" + parameter(key_.get(), OSSL_PKEY_PARAM_RSA_E, 0) +
           R"(","kty":"RSA","n":")" + parameter(key_.get(), OSSL_PKEY_PARAM_RSA_N, 0) + R"("})";
  }
  if (algorithm_ == "EdDSA") {
    std::string raw(32, '\0');
    std::size_t size = raw.size();
    require_success(EVP_PKEY_get_raw_public_key(
                        key_.get(), reinterpret_cast<unsigned char*>(raw.data()), &size) == 1);
    return R"({"crv":"Ed25519","kty":"OKP","x":")" + to_base64url(raw) + R"("})";
  }
  const int size = coordinate_size(algorithm_);
  return std::string(R"({"crv":")") + (algorithm_ == "ES384" ? "P-384" : "P-256") +
         R"(","kty":"EC","x":")" + parameter(key_.get(), OSSL_PKEY_PARAM_EC_PUB_X, size) +
         R"(","y":")" + parameter(key_.get(), OSSL_PKEY_PARAM_EC_PUB_Y, size) + R"("})";
}

std::string SigningKey::to_pem() const {
  const Bio bio(BIO_new(BIO_s_mem()));
  require_success(PEM_write_bio_PKCS8PrivateKey(bio.get(), key_.get(), nullptr, nullptr, 0, nullptr,
                                                nullptr) == 1);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

}  // namespace sluice

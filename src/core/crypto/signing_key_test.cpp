#include "core/crypto/signing_key.hpp"

#include <gtest/gtest.h>
#include <memory>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <string>
#include <string_view>

#include "core/crypto/digest.hpp"
#include "core/text/base64.hpp"

namespace sluice {
namespace {

/// The key of RFC 8037, appendix A.1, as PKCS #8.
constexpr std::string_view kEd25519 =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
    "-----END PRIVATE KEY-----\n";

/// Whether OpenSSL accepts a JWS signature on P-256 or P-384.
bool is_signature(const SigningKey& key, std::string_view text, std::string_view signature) {
  const std::string pem = key.to_pem();
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> raw(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr), EVP_PKEY_free);
  const std::unique_ptr<ECDSA_SIG, decltype(&ECDSA_SIG_free)> pair(ECDSA_SIG_new(), ECDSA_SIG_free);
  const auto half = signature.size() / 2;
  const auto number = [](std::string_view bytes) {
    return BN_bin2bn(reinterpret_cast<const unsigned char*>(bytes.data()),
                     static_cast<int>(bytes.size()), nullptr);
  };
  ECDSA_SIG_set0(pair.get(), number(signature.substr(0, half)), number(signature.substr(half)));
  unsigned char* der = nullptr;
  const int size = i2d_ECDSA_SIG(pair.get(), &der);
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> digest(EVP_MD_CTX_new(),
                                                                       EVP_MD_CTX_free);
  EVP_DigestVerifyInit(digest.get(), nullptr, half == 32 ? EVP_sha256() : EVP_sha384(), nullptr,
                       raw.get());
  const bool is_valid =
      EVP_DigestVerify(digest.get(), der, static_cast<std::size_t>(size),
                       reinterpret_cast<const unsigned char*>(text.data()), text.size()) == 1;
  OPENSSL_free(der);
  return is_valid;
}

TEST(SigningKeyTest, SignsOnP256AsTwoNumbers) {
  const SigningKey key = SigningKey::generate();
  EXPECT_EQ(key.algorithm(), "ES256");
  for (int i = 0; i < 50; ++i) {
    const std::string signature = key.sign("text");
    ASSERT_EQ(signature.size(), 64U);
    ASSERT_TRUE(is_signature(key, "text", signature));
    ASSERT_FALSE(is_signature(key, "other", signature));
  }
}

TEST(SigningKeyTest, IsTheSameAfterPem) {
  const SigningKey key = SigningKey::generate();
  const auto again = SigningKey::from_pem(key.to_pem());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->public_jwk(), key.public_jwk());
  EXPECT_TRUE(is_signature(key, "text", again->sign("text")));
}

TEST(SigningKeyTest, SignsWithEd25519AsRfc8037) {
  const auto key = SigningKey::from_pem(kEd25519);
  ASSERT_TRUE(key);
  EXPECT_EQ(key->algorithm(), "EdDSA");
  EXPECT_EQ(key->public_jwk(),
            R"({"crv":"Ed25519","kty":"OKP","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"})");
  EXPECT_EQ(
      to_base64url(key->sign("eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc")),
      "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg");
  // RFC 8037, appendix A.3.
  EXPECT_EQ(to_base64url(sha256(key->public_jwk())), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
}

TEST(SigningKeyTest, TakesRsaKeysOf2048Bits) {
  for (const unsigned bits : {1024U, 2048U}) {
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> raw(EVP_RSA_gen(bits), EVP_PKEY_free);
    const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()), BIO_free);
    PEM_write_bio_PrivateKey(bio.get(), raw.get(), nullptr, nullptr, 0, nullptr, nullptr);
    char* text = nullptr;
    const auto size = static_cast<std::size_t>(BIO_get_mem_data(bio.get(), &text));
    const auto key = SigningKey::from_pem({text, size});
    EXPECT_EQ(key.has_value(), bits == 2048U);
    if (key) {
      EXPECT_EQ(key->algorithm(), "RS256");
      EXPECT_EQ(key->sign("text").size(), 256U);
      EXPECT_TRUE(key->public_jwk().starts_with(R"({"e":"AQAB","kty":"RSA","n":")"));
    }
  }
}

TEST(SigningKeyTest, RefusesWhatIsNoPrivateKey) {
  EXPECT_FALSE(SigningKey::from_pem(""));
  EXPECT_FALSE(
      SigningKey::from_pem("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"));
  EXPECT_FALSE(SigningKey::from_pem(std::string(100'000, 'x')));
}

}  // namespace
}  // namespace sluice

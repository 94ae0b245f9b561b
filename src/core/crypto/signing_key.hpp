#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct evp_pkey_st;

namespace sluice {

/// A private key that signs as JSON Web Signatures need it (RFC 7515, RFC 7518, RFC 8037).
/// Immutable and thread-safe; copies share the key. Functions throw std::runtime_error if OpenSSL
/// fails for want of memory or randomness.
class SigningKey {
 public:
  /// A new key on the curve P-256.
  static SigningKey generate();
  /// Reads an unencrypted PEM file's text. Nothing unless it is a private key on P-256, P-384 or
  /// Ed25519, or an RSA key of 2048 bits or more.
  static std::optional<SigningKey> from_pem(std::string_view pem);

  /// The name of the algorithm it signs with: ES256, ES384, EdDSA or RS256.
  [[nodiscard]] std::string_view algorithm() const { return algorithm_; }
  /// The signature of `text` in the form that RFC 7518 gives it.
  [[nodiscard]] std::string sign(std::string_view text) const;
  /// The public half as a JWK: JSON with the required members only, in the order of their names, as
  /// a thumbprint needs it (RFC 7638, section 3).
  [[nodiscard]] std::string public_jwk() const;
  /// The private key as PEM (PKCS #8). Keep it secret.
  [[nodiscard]] std::string to_pem() const;

 private:
  SigningKey(std::shared_ptr<evp_pkey_st> key, std::string_view algorithm)
      : key_(std::move(key)), algorithm_(algorithm) {}
  static std::optional<SigningKey> of(std::shared_ptr<evp_pkey_st> key);

  std::shared_ptr<evp_pkey_st> key_;
  std::string_view algorithm_;
};

}  // namespace sluice

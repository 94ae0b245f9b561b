#pragma once

#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;  // of OpenSSL

namespace sluice {

/// The 32 bytes of SHA-256 (FIPS 180-4). Thread-safe.
std::string sha256(std::string_view bytes);
/// The same in 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

/// SHA-256 of bytes that come in pieces. One thread at a time.
class Sha256 {
 public:
  Sha256();
  void add(std::string_view bytes);
  /// The digest of all that was added until now, in hexadecimal digits. More may be added.
  [[nodiscard]] std::string hex() const;

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  using Context = std::unique_ptr<evp_md_ctx_st, Free>;

  static Context make();

  Context context_ = make();
};

}  // namespace sluice

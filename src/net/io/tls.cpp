#include "net/io/tls.hpp"

#include <array>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509err.h>
#include <string>
#include <string_view>
#include <system_error>

namespace sluice {
namespace {

constexpr int kFailure = 1;

/// Why a call of OpenSSL failed: what the system said, or else OpenSSL's last reason.
std::string openssl_reason() {
  std::string reason = "unknown reason";
  while (const unsigned long code = ERR_get_error()) {
    if (ERR_SYSTEM_ERROR(code)) {
      ERR_clear_error();
      return std::generic_category().message(ERR_GET_REASON(code));
    }
    if (const char* const own = ERR_reason_error_string(code)) reason = own;
  }
  return reason;
}

constexpr std::array<unsigned char, 9> kHttp11 = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

/// Picks http/1.1 when the client offers ALPN at all (RFC 7301).
int select_alpn(SSL* /*ssl*/, const unsigned char** out, unsigned char* out_length,
                const unsigned char* in, unsigned int in_length, void* /*context*/) {
  unsigned char* selected = nullptr;
  if (SSL_select_next_proto(&selected, out_length, kHttp11.data(), kHttp11.size(), in, in_length) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *out = selected;
  return SSL_TLSEXT_ERR_OK;
}

void set_common(SSL_CTX* context) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(
      context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
}

}  // namespace

Result<std::shared_ptr<TlsContext>> TlsContext::server(const std::string& certificate_file,
                                                       const std::string& key_file) {
  SSL_CTX* const native = SSL_CTX_new(TLS_server_method());
  if (native == nullptr) return fail(kFailure, "TLS is not available: " + openssl_reason());
  const std::shared_ptr<TlsContext> context(new TlsContext(native, false, false));
  set_common(native);
  // A server does not need close_notify, because it ignores an incomplete request. A client does: a
  // reply can end with the connection, so an attacker could otherwise cut it short unnoticed.
  SSL_CTX_set_options(native, SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_alpn_select_cb(native, select_alpn, nullptr);
  static constexpr std::array<unsigned char, 6> kSessionContext = {'s', 'l', 'u', 'i', 'c', 'e'};
  SSL_CTX_set_session_id_context(native, kSessionContext.data(), kSessionContext.size());
  if (SSL_CTX_use_certificate_chain_file(native, certificate_file.c_str()) != 1) {
    return fail(kFailure, "Cannot use the TLS certificate " + certificate_file + ": " +
                              openssl_reason() + " (a PEM file with the chain is wanted)");
  }
  // Nobody is there to type a passphrase.
  SSL_CTX_set_default_passwd_cb(native, [](char*, int, int, void*) { return -1; });
  if (SSL_CTX_use_PrivateKey_file(native, key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    if (ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH) {
      ERR_clear_error();
      return fail(kFailure, "The TLS key " + key_file + " does not belong to the certificate " +
                                certificate_file);
    }
    return fail(kFailure, "Cannot use the TLS key " + key_file + ": " + openssl_reason() +
                              " (a PEM file without a passphrase is wanted)");
  }
  return context;
}

Result<std::shared_ptr<TlsContext>> TlsContext::client(const TlsClientOptions& options) {
  SSL_CTX* const native = SSL_CTX_new(TLS_client_method());
  if (native == nullptr) return fail(kFailure, "TLS is not available: " + openssl_reason());
  const std::shared_ptr<TlsContext> context(new TlsContext(native, true, !options.insecure));
  set_common(native);
  SSL_CTX_set_alpn_protos(native, kHttp11.data(), kHttp11.size());
  if (options.insecure) {
    SSL_CTX_set_verify(native, SSL_VERIFY_NONE, nullptr);
    return context;
  }
  SSL_CTX_set_verify(native, SSL_VERIFY_PEER, nullptr);
  if (options.ca_file.empty()) {
    SSL_CTX_set_default_verify_paths(native);
  } else if (SSL_CTX_load_verify_locations(native, options.ca_file.c_str(), nullptr) != 1) {
    return fail(kFailure, "Cannot use the CA file " + options.ca_file + ": " + openssl_reason());
  }
  return context;
}

TlsContext::~TlsContext() {
  SSL_CTX_free(context_);
}

}  // namespace sluice

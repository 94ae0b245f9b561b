#pragma once

#include <memory>
#include <string>

#include "core/error.hpp"

struct ssl_ctx_st;
struct ssl_st;

namespace sluice {

struct TlsClientOptions {
  std::string ca_file = {};  // PEM; empty: the system's store
  bool insecure = false;     // accept any certificate (for tests on one's own machine)
};

/// TLS settings shared by many connections: TLS 1.2 or later, ALPN http/1.1; a server resumes
/// sessions. Thread-safe once made.
class TlsContext {
 public:
  /// A server's context from PEM files: the certificate with its chain, and its key. Errors name
  /// the file and the reason.
  static Result<std::shared_ptr<TlsContext>> server(const std::string& certificate_file,
                                                    const std::string& key_file);
  /// A client's context, which verifies the peer's chain and host name unless told otherwise.
  static Result<std::shared_ptr<TlsContext>> client(const TlsClientOptions& options = {});

  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  [[nodiscard]] ssl_ctx_st* native() const { return context_; }
  [[nodiscard]] bool is_client() const { return is_client_; }
  [[nodiscard]] bool verifies() const { return verifies_; }

 private:
  TlsContext(ssl_ctx_st* context, bool is_client, bool verifies)
      : context_(context), is_client_(is_client), verifies_(verifies) {}

  ssl_ctx_st* context_;
  bool is_client_;
  bool verifies_;
};

}  // namespace sluice

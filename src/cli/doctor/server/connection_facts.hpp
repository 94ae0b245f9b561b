#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "net/client/proxy_settings.hpp"
#include "net/http/url.hpp"
#include "net/io/tls.hpp"

namespace sluice {

/// What a TLS handshake has shown.
struct TlsFacts {
  std::string version;  // "TLSv1.3"
  std::string problem;  // why clients do not trust the certificate; empty: they do
  int days_left = 0;    // of the certificate; negative: it has expired
  Duration took{};
};

/// One of the server's addresses.
struct AddressFacts {
  std::string address;  // without the port
  std::string problem;  // why there is no connection; empty: there is one
  Duration took{};
};

/// How the server at a URL, or the proxy on the way to it, is reached.
struct ConnectionFacts {
  Duration lookup{};                    // of the name
  std::vector<AddressFacts> addresses;  // at most kMaxAddresses of them
  bool is_private = false;              // only this machine or its networks can reach the server
  std::string tunnel_problem = {};      // why the proxy does not connect to the server
  std::optional<TlsFacts> tls = {};     // of https and wss, if there is a connection
  std::string tls_problem = {};         // why there was no handshake
  bool is_silent = false;               // because the server did not answer it
  [[nodiscard]] bool is_reachable() const;

  static constexpr std::size_t kMaxAddresses = 4;
};

/// Looks up the server, or the proxy if there is one; connects to each address; and does one TLS
/// handshake with the server, through the proxy's tunnel. Sends nothing else. Blocks at most until
/// `deadline`. `tls` is a client's context, for https and wss. Error: 502, the name has no address.
Result<ConnectionFacts> look_at_connection(const Url& server,
                                           const std::optional<ProxyServer>& proxy, TlsContext* tls,
                                           TimePoint deadline);

}  // namespace sluice

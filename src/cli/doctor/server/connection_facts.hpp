#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/authorization/address_kind.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
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
  AddressKind kind = AddressKind::global;
  std::string problem;  // why there is no connection; empty: there is one
  Duration took{};
};

/// How the server at a URL is reached.
struct ConnectionFacts {
  Duration lookup{};                    // of the name
  std::vector<AddressFacts> addresses;  // at most kMaxAddresses of them
  std::optional<TlsFacts> tls = {};     // of https and wss, if there is a connection
  std::string tls_problem = {};         // why there was no handshake
  [[nodiscard]] bool is_reachable() const;
  /// Whether only this machine or its networks can reach the server.
  [[nodiscard]] bool is_private() const;

  static constexpr std::size_t kMaxAddresses = 4;
};

/// Looks the server up, connects to each address, and does one TLS handshake. Sends nothing. Blocks
/// at most until `deadline`. `tls` is a client's context, for https and wss. Error: 502, the name
/// has no address.
Result<ConnectionFacts> look_at_connection(const Url& server, TlsContext* tls, TimePoint deadline);

}  // namespace sluice

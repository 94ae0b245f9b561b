#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/session/contract/server_link.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/text/secrets.hpp"
#include "net/client/http_client.hpp"
#include "net/loop/event_loop.hpp"
#include "sluice/client.hpp"

namespace sluice {

/// A server that listens, and what each request to it has.
struct LinkPlace {
  std::string url;  // see connect()
  HttpTransport http_transport = HttpTransport::any;
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::optional<AuthorizationOptions> authorization = {};
  std::string ca_file = {};  // PEM; empty: the system's authorities
  bool uses_environment_proxies = true;
  Duration connect_timeout = std::chrono::seconds(30);  // of each connection; 0: no limit
  OnTraffic on_traffic = {};
  /// What is masked where it is shown, with what authorizes requests; null: secrets_of() the place.
  std::shared_ptr<KnownSecrets> secrets = {};
};

/// What is likely to be secret of a place: see secrets_in_url() and secrets_in_header().
std::vector<std::string> secrets_of(const LinkPlace& place);

/// The user's header fields as links take them, without those that links write themselves. Error
/// 400: the first that may not be sent.
Result<HttpHeaderList> own_headers(const HttpHeaderList& given);

/// Makes the link for a place, whose scheme names the transport. Error 400: what is wrong with it.
Result<std::unique_ptr<ServerLink>> open_link(EventLoop& loop, const LinkPlace& place);
Result<std::unique_ptr<ServerLink>> open_link(EventLoop& loop, const ServerCommand& command,
                                              const OnTraffic& on_traffic = {});

namespace detail {
/// connect() to a place: without a probe if it is known to be of the legacy era.
Client connect_place(const LinkPlace& place, ClientOptions options);
}  // namespace detail

}  // namespace sluice

#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "cli/doctor/server/requester.hpp"
#include "client/api/background_loop.hpp"
#include "core/text/secrets.hpp"
#include "net/client/http_client.hpp"
#include "net/http/url.hpp"
#include "net/io/tls.hpp"

namespace sluice {

struct HttpRequesterOptions {
  Url server;  // http or https
  Dial dial = {};
  std::shared_ptr<const ProxySettings> proxies = {};  // null: none
  std::shared_ptr<TlsContext> tls = {};
  HttpHeaderList headers = {};  // of the user, for each request
  TimePoint deadline;           // of the whole examination
  std::size_t max_requests = 100;
  /// Whether what `sluice login` has stored authorizes the requests.
  bool uses_logins = false;
  std::shared_ptr<KnownSecrets> secrets = {};  // gets the tokens of it; not null if it is used
  /// Ends the request that is under way, and all that follow but those that end a session.
  std::stop_token stop = {};
};

/// Sends the requests of an examination. Belongs to one thread, which must not be the loop's.
class HttpRequester final : public Requester {
 public:
  explicit HttpRequester(HttpRequesterOptions options);
  ~HttpRequester() override;
  HttpRequester(const HttpRequester&) = delete;
  HttpRequester& operator=(const HttpRequester&) = delete;

  Result<Reply> ask(const Ask& ask) override;
  Result<OauthReply> fetch(const std::string& url) override;
  [[nodiscard]] Duration left() const override;
  bool pause(Duration time) override;

 private:
  struct OnLoop;  // what belongs to the loop
  class Exchange;

  /// Counts a request, which waits for `at_least` also if there is no time left. The end of a
  /// session needs no permission, and kFarewells requests are kept for it. Error: kLimitReached.
  Result<void> admit(bool is_farewell, Duration at_least);

  /// One session is open at a time.
  static constexpr std::size_t kFarewells = 1;

  const HttpRequesterOptions options_;
  std::size_t requests_ = 0;
  const std::shared_ptr<BackgroundLoop> background_ = BackgroundLoop::shared();
  std::shared_ptr<OnLoop> on_loop_;
};

}  // namespace sluice

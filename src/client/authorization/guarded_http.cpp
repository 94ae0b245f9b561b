#include "client/authorization/guarded_http.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "core/text/secrets.hpp"
#include "core/text/text.hpp"
#include "net/http/http_types.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {
namespace {

/// Where a redirect from `base` leads.
Result<Url> redirect_target(const Url& base, std::string_view location) {
  if (location.starts_with('/') && !location.starts_with("//")) {
    return parse_url(base.scheme + "://" + base.authority() + std::string(location));
  }
  return parse_url(location);
}

/// Whether a reply of this status leads elsewhere (RFC 9110, section 15.4).
bool is_followed(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

}  // namespace

class GuardedHttp::Exchange final : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(GuardedHttp& owner, std::uint64_t number, OauthRequest request, Done done)
      : owner_(&owner), number_(number), request_(std::move(request)), done_(std::move(done)) {}
  ~Exchange() { release(); }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  void start() {
    EventLoop& loop = *owner_->loop_;
    timer_ = loop.schedule_at(loop.clock().now() + owner_->options_.timeout, [this] {
      timer_ = 0;
      finish(fail(kGatewayTimeout, place() + " does not answer in time"));
    });
    loop.post([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->begin();
    });
  }

 private:
  /// For errors.
  [[nodiscard]] std::string place() const { return masked_url(request_.url); }
  void begin() {
    Result<Url> url = parse_url(request_.url);
    if (!url) return finish(std::unexpected(url.error()));
    url_ = *std::move(url);
    if (const std::string why = owner_->refusal(url_); !why.empty()) {
      return finish(fail(kBadRequest, place() + ": " + why));
    }
    if (request_.named_by == NamedBy::user) return ask(*owner_->trusted_);
    owner_->look_up_server([weak = weak_from_this()] {
      if (const auto self = weak.lock(); self && self->done_) self->ask(*self->owner_->guarded_);
    });
  }
  void ask(HttpClient& client) {
    reply_ = OauthReply();
    location_.clear();
    const auto weak = weak_from_this();
    call_ = client.send(
        {.method = request_.method,
         .url = url_,
         .headers = request_.headers,
         .body = request_.body,
         .is_patient = true},  // the whole exchange has a time
        {.on_head =
             [weak](const HttpReplyHead& head) {
               const auto self = weak.lock();
               if (self == nullptr) return;
               self->reply_.status = head.status;
               self->reply_.dpop_nonce = head.header("DPoP-Nonce");
               if (is_followed(head.status)) self->location_ = head.header("Location");
             },
         .on_body =
             [weak](std::string_view bytes) {
               const auto self = weak.lock();
               if (self == nullptr) return;
               if (self->reply_.body.size() + bytes.size() > kMaxReply) {
                 return self->finish(
                     fail(kBadGateway, self->place() + " answers with more than a client takes"));
               }
               self->reply_.body.append(bytes);
             },
         .on_complete =
             [weak, &client] {
               if (const auto self = weak.lock()) self->on_complete(client);
             },
         .on_failure =
             [weak](const Error& why) {
               const auto self = weak.lock();
               if (self == nullptr) return;
               std::string message = why.message;
               if (why.code == kBadRequest) {
                 message.append(
                     ": a server has named a place that is not for everybody. If you trust it, "
                     "allow "
                     "private addresses");
               }
               self->finish(fail(why.code, std::move(message)));
             }});
  }
  void on_complete(HttpClient& client) {
    if (location_.empty() || request_.method != "GET") return finish(std::move(reply_));
    if (++redirects_ > owner_->options_.max_redirects) {
      return finish(fail(kBadGateway, place() + " leads to too many redirects"));
    }
    Result<Url> next = redirect_target(url_, location_);
    if (!next) return finish(std::unexpected(next.error()));
    if (url_.is_tls() && !next->is_tls()) {
      return finish(fail(kBadRequest, place() + " leads to " + masked_url(next->to_string()) +
                                          ", which is without TLS"));
    }
    if (const std::string why = owner_->refusal(*next); !why.empty()) {
      return finish(fail(kBadRequest, masked_url(next->to_string()) + ": " + why));
    }
    url_ = *std::move(next);
    ask(client);
  }
  void finish(Result<OauthReply> outcome) {
    const auto self = shared_from_this();
    const Done done = std::exchange(done_, {});
    if (!done) return;
    release();
    owner_->exchanges_.erase(number_);
    done(std::move(outcome));
  }
  void release() {
    call_.drop();
    if (timer_ != 0) owner_->loop_->cancel(std::exchange(timer_, 0));
  }

  GuardedHttp* owner_;
  const std::uint64_t number_;
  OauthRequest request_;
  Done done_;  // empty once it is called
  Url url_;
  HttpClient::Call call_;
  OauthReply reply_;
  std::string location_;
  int redirects_ = 0;
  Executor::TimerId timer_ = 0;
};

GuardedHttp::GuardedHttp(EventLoop& loop, GuardedHttpOptions options)
    : loop_(&loop), options_(std::move(options)) {
  HttpClientOptions http{.proxies = options_.proxies, .tls = options_.tls, .tap = options_.tap};
  trusted_ = std::make_unique<HttpClient>(loop, http);
  http.may_connect = [this](const Endpoint& endpoint) { return may_connect(endpoint); };
  guarded_ = std::make_unique<HttpClient>(loop, http);
}

GuardedHttp::~GuardedHttp() {
  exchanges_.clear();
}

void GuardedHttp::send(OauthRequest request, Done done) {
  if (exchanges_.size() >= kMaxRequests) {
    loop_->post([done = std::move(done)] {
      done(fail(kBadGateway, "There are too many requests for authorization under way"));
    });
    return;
  }
  const std::uint64_t number = ++last_number_;
  const auto exchange =
      std::make_shared<Exchange>(*this, number, std::move(request), std::move(done));
  exchanges_.emplace(number, exchange);
  exchange->start();
}

void GuardedHttp::server_is_at(const Endpoint& endpoint) {
  const AddressKind kind = kind_of(endpoint);
  // A server with addresses of several kinds may be a trap itself.
  seen_kind_ = seen_kind_.value_or(kind) == kind ? kind : AddressKind::global;
}

void GuardedHttp::look_up_server(std::function<void()> then) {
  if (is_looked_up_ || seen_kind_) return then();
  waiting_.push_back(std::move(then));
  if (waiting_.size() > 1) return;
  const auto known = [this](const Result<Endpoints>& found) {
    is_looked_up_ = true;
    const auto is_alike = [&found](const Endpoint& each) {
      return kind_of(each) == kind_of(found->front());
    };
    if (found && !found->empty() && std::ranges::all_of(*found, is_alike)) {
      looked_up_kind_ = kind_of(found->front());
    }
    for (const std::function<void()>& each : std::exchange(waiting_, {})) each();
  };
  const Url& server = options_.server;
  if (Endpoints literal = endpoints_of_address(server.host, server.port); !literal.empty()) {
    return known(std::move(literal));
  }
  if (options_.proxies && options_.proxies->proxy_for(server).value_or(std::nullopt)) {
    return known(Endpoints());
  }
  lookup_.start(*loop_, server.host, server.port, known);
}

bool GuardedHttp::may_connect(const Endpoint& endpoint) const {
  const AddressKind kind = kind_of(endpoint);
  if (kind == AddressKind::global || kind == seen_kind_.value_or(looked_up_kind_)) {
    return true;
  }
  return options_.allow_private_addresses &&
         (kind == AddressKind::private_use || kind == AddressKind::loopback);
}

std::string GuardedHttp::refusal(const Url& url) const {
  if (options_.proxies) {
    if (const auto proxy = options_.proxies->proxy_for(url); !proxy) return proxy.error().message;
  }
  if (url.is_websocket()) return "authorization needs https (OAuth 2.1, section 1.5)";
  if (url.is_tls() || is_this_machine(url.host) || !options_.server.is_tls()) return {};
  return "authorization needs https, because tokens are secret (OAuth 2.1, section 1.5)";
}

}  // namespace sluice

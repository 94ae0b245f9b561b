#include <algorithm>
#include <chrono>
#include <utility>

#include "client/authorization/client_registration.hpp"
#include "client/authorization/grant.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {
namespace {

constexpr std::string_view kDeviceCodeGrant = "urn:ietf:params:oauth:grant-type:device_code";
/// How much longer to wait after each "slow_down" (RFC 8628, section 3.5).
constexpr auto kSlowDown = std::chrono::seconds(5);
constexpr auto kLongestInterval = std::chrono::minutes(1);
constexpr auto kLongestDeviceLogin = std::chrono::minutes(30);

/// The device authorization grant (RFC 8628).
class DeviceGrant final : public Grant, public std::enable_shared_from_this<DeviceGrant> {
 public:
  DeviceGrant(AuthorizationContextPtr context, GrantTarget target)
      : context_(std::move(context)), target_(std::move(target)) {}
  ~DeviceGrant() override { release(); }
  DeviceGrant(const DeviceGrant&) = delete;
  DeviceGrant& operator=(const DeviceGrant&) = delete;

  void start(Done done) override {
    done_ = std::move(done);
    if (!context_->options.on_prompt) {
      return finish(fail(kNotAuthorized, "A login needs a user, and there is none"));
    }
    if (target_.server.device_authorization_endpoint.empty()) {
      return finish(fail(kNotAuthorized, "The authorization server " + target_.server.issuer +
                                             " offers no login with another device (RFC 8628)"));
    }
    find_client(context_, target_.server, {},
                [weak = weak_from_this()](Result<OauthClient> client) {
                  if (const auto self = weak.lock()) self->on_client(std::move(client));
                });
  }

 private:
  void on_client(Result<OauthClient> client) {
    if (!client) return finish(std::unexpected(client.error()));
    client_ = *std::move(client);
    FormFields fields;
    add_target(fields, *context_, target_);
    send_client_request(context_->http,
                        {.endpoint = target_.server.device_authorization_endpoint,
                         .issuer = target_.server.issuer,
                         .client = client_,
                         .fields = std::move(fields)},
                        context_->time_of_day(),
                        [weak = weak_from_this()](const Result<OauthReply>& reply) {
                          if (const auto self = weak.lock()) self->on_device(reply);
                        });
  }
  void on_device(const Result<OauthReply>& reply) {
    if (!reply) return finish(std::unexpected(reply.error()));
    const Result<DeviceReply> device =
        parse_device_reply(reply->status, reply->body, target_.server.issuer);
    if (!device) return finish(std::unexpected(device.error()));
    const std::string& url = device->verification_uri_complete.empty()
                                 ? device->verification_uri
                                 : device->verification_uri_complete;
    if (const Result<Url> place = parse_url(url); !place || place->is_websocket()) {
      return finish(fail(kNotAuthorized, "The authorization server " + target_.server.issuer +
                                             " has no verification_uri that is an https URL"));
    }
    device_code_ = device->device_code;
    interval_ = std::min<Duration>(device->interval, kLongestInterval);
    until_ =
        context_->loop->clock().now() + std::min<Duration>(device->expiry, kLongestDeviceLogin);
    const auto keep = shared_from_this();
    poll_later();
    context_->options.on_prompt({.url = url, .user_code = device->user_code});
  }
  void poll_later() {
    const TimePoint now = context_->loop->clock().now();
    if (now + interval_ > until_) {
      return finish(fail(kNotAuthorized, "Nobody has logged in within the time for it"));
    }
    timer_ = context_->loop->schedule_at(now + interval_, [this] {
      timer_ = 0;
      poll();
    });
  }
  void poll() {
    ClientRequest request{
        .endpoint = target_.server.token_endpoint,
        .issuer = target_.server.issuer,
        .client = client_,
        .fields = {{"grant_type", std::string(kDeviceCodeGrant)}, {"device_code", device_code_}},
        .dpop = target_.dpop};
    if (context_->options.send_resource) {
      request.fields.emplace_back("resource", target_.resource.resource);
    }
    request_token(context_->http, std::move(request), context_->time_of_day(),
                  [weak = weak_from_this()](const Result<TokenReply>& reply) {
                    if (const auto self = weak.lock()) self->on_poll(reply);
                  });
  }
  void on_poll(const Result<TokenReply>& reply) {
    if (reply) return finish(make_token(*context_, target_, client_, *reply));
    const std::string name = oauth_error(reply.error());
    const bool is_trouble = reply.error().code != kNotAuthorized;
    if (name == "slow_down" || is_trouble) {
      interval_ = std::min<Duration>(interval_ + kSlowDown, kLongestInterval);
    } else if (name != "authorization_pending") {
      return finish(std::unexpected(reply.error()));
    }
    poll_later();
  }
  void finish(Result<StoredToken> outcome) {
    const auto keep = shared_from_this();
    const Done done = std::exchange(done_, {});
    if (!done) return;
    release();
    done(std::move(outcome));
  }
  void release() {
    if (timer_ != 0) context_->loop->cancel(std::exchange(timer_, 0));
  }

  const AuthorizationContextPtr context_;
  const GrantTarget target_;
  Done done_;
  OauthClient client_;
  std::string device_code_;
  Duration interval_{};  // between polls
  TimePoint until_;
  Executor::TimerId timer_ = 0;
};

}  // namespace

std::shared_ptr<Grant> make_device_grant(AuthorizationContextPtr context, GrantTarget target) {
  return std::make_shared<DeviceGrant>(std::move(context), std::move(target));
}

}  // namespace sluice

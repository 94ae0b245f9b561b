#pragma once

#include <functional>
#include <memory>

#include "client/link/request_authorizer.hpp"
#include "net/client/http_client.hpp"
#include "net/loop/event_loop.hpp"

namespace sluice {

/// Adds the fields `more` to a request's, in place of those with the same names.
void add_authorization(HttpHeaderList& headers, HttpHeaderList more);

/// An HttpClient whose requests are authorized, and sent again after a refusal that the authorizer
/// could deal with. Without an authorizer it is the client itself. Belongs to the loop.
class AuthorizedHttp {
 public:
  /// `authorizer` may be null.
  AuthorizedHttp(EventLoop& loop, const HttpClientOptions& options,
                 std::shared_ptr<RequestAuthorizer> authorizer);

  /// A request under way. Destroying it drops the request.
  class Call {
   public:
    Call() = default;
    ~Call() { drop(); }
    Call(Call&& other) noexcept = default;
    Call& operator=(Call&& other) noexcept {
      if (this != &other) {
        drop();
        exchange_ = std::move(other.exchange_);
        plain_ = std::move(other.plain_);
      }
      return *this;
    }
    void drop();
    /// As HttpClient::Call::pause().
    void pause(bool is_paused);

   private:
    friend class AuthorizedHttp;
    class Exchange;
    std::shared_ptr<Exchange> exchange_;
    HttpClient::Call plain_;
  };

  /// As HttpClient::send(). Besides, on_failure is called with code 401 or 403 if the server
  /// refuses the request and no authorization helps. A refusal that is not about authorization is a
  /// reply like others.
  [[nodiscard]] Call send(HttpClientRequest request, HttpReplyCallbacks callbacks);
  /// Sends a request whose reply is ignored. Calls `done` once the reply is there, there is none,
  /// or `patience` has passed; until then what is needed lives, even without this object.
  void send_last(HttpClientRequest request, Duration patience, std::function<void()> done);

  /// How often a request is sent at most.
  static constexpr int kMaxAttempts = 4;

 private:
  EventLoop* loop_;
  std::shared_ptr<HttpClient> http_;
  std::shared_ptr<RequestAuthorizer> authorizer_;
};

}  // namespace sluice

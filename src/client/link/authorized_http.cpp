#include "client/link/authorized_http.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "client/link/unknown_session.hpp"
#include "core/recycling.hpp"
#include "net/http/http_types.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {
namespace {

/// How many bytes of a refusal are looked at, and how long they are waited for.
constexpr std::size_t kMostDoubted = std::size_t{16} << 10U;
constexpr Duration kDoubt = std::chrono::seconds(2);

/// A head that outlives its reply.
class KeptHead {
 public:
  explicit KeptHead(const HttpReplyHead& head) : status_(head.status) {
    for (const HeaderField& each : head.headers) fields_.emplace_back(each.name, each.value);
    for (const auto& [name, value] : fields_) views_.push_back({name, value});
  }
  KeptHead(KeptHead&&) noexcept = default;
  KeptHead& operator=(KeptHead&&) = delete;
  ~KeptHead() = default;

  /// Valid as long as this object.
  [[nodiscard]] HttpReplyHead head() const {
    return {.status = status_, .headers = std::span(views_)};
  }

 private:
  int status_;
  HttpHeaderList fields_;
  std::vector<HeaderField> views_;  // of these
};

}  // namespace

void add_authorization(HttpHeaderList& headers, HttpHeaderList more) {
  for (auto& field : more) {
    std::erase_if(headers, [&field](const auto& other) {
      return equals_ignoring_case(other.first, field.first);
    });
    headers.push_back(std::move(field));
  }
}

class AuthorizedHttp::Call::Exchange final : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(const AuthorizedHttp& owner, HttpClientRequest&& request, HttpReplyCallbacks&& callbacks)
      : loop_(owner.loop_),
        http_(owner.http_),
        authorizer_(owner.authorizer_),
        request_(std::move(request)),
        callbacks_(std::move(callbacks)) {}

  void authorize() {
    // What is left of a reply that was refused is nobody's.
    call_.drop();
    is_refused_ = false;
    was_sent_ = false;
    stop_doubting();
    is_starting_ = true;
    authorizer_->authorize(request_.method, request_.url,
                           [weak = weak_from_this()](Result<RequestAuthorization> made) {
                             if (const auto self = weak.lock())
                               self->on_authorized(std::move(made));
                           });
    is_starting_ = false;
  }
  ~Exchange() { stop_doubting(); }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  void drop() {
    is_over_ = true;
    stop_doubting();
    call_.drop();
  }
  void pause(bool is_paused) {
    is_paused_ = is_paused;
    call_.pause(is_paused);
  }

  // HttpReplyCallbacks
  void on_connected() {
    if (!is_over_ && callbacks_.on_connected) callbacks_.on_connected();
  }
  void on_head(const HttpReplyHead& head) {
    authorizer_->on_reply(head);
    if (head.status == kUnauthorized && is_of_session()) {
      doubted_.emplace(head);
      timer_ = loop_->schedule_at(loop_->clock().now() + kDoubt, [weak = weak_from_this()] {
        const auto self = weak.lock();
        if (self != nullptr && self->doubted_) self->resolve_doubt();
      });
    } else {
      judge(head);
    }
  }
  void on_sent() {
    was_sent_ = true;
    const bool is_passed_on = !is_refused_ && !is_over_ && !doubted_;
    if (is_passed_on && callbacks_.on_sent) callbacks_.on_sent();
  }
  void on_body(std::string_view bytes) {
    if (doubted_) return on_doubted_body(bytes);
    if (!is_refused_ && !is_over_ && callbacks_.on_body) callbacks_.on_body(bytes);
  }
  void on_complete() {
    const auto keep = shared_from_this();
    if (doubted_) resolve_doubt();
    if (is_refused_ || std::exchange(is_over_, true)) return;
    if (callbacks_.on_complete) callbacks_.on_complete();
  }
  void on_failure(const Error& why) {
    const auto keep = shared_from_this();
    if (doubted_) resolve_doubt();
    if (!is_refused_) fail(why);
  }

 private:
  [[nodiscard]] bool is_of_session() const {
    return std::ranges::any_of(request_.headers,
                               [](const auto& field) { return field.first == "Mcp-Session-Id"; });
  }
  void on_doubted_body(std::string_view bytes) {
    const auto keep = shared_from_this();
    const std::string_view taken = bytes.substr(0, kMostDoubted - body_.size());
    body_.append(taken);
    bytes.remove_prefix(taken.size());
    if (bytes.empty()) return;
    resolve_doubt();
    on_body(bytes);
  }
  /// Some servers say 401 of a session that they do not know, whatever the token is.
  void resolve_doubt() {
    const auto keep = shared_from_this();
    const KeptHead kept = std::move(*doubted_);
    const std::string body = std::move(body_);
    stop_doubting();
    const bool is_unknown = is_of_unknown_session(kUnauthorized, body, false);
    is_unknown ? pass_on(kept.head()) : judge(kept.head());
    const auto goes_on = [this] { return !is_refused_ && !is_over_; };
    if (goes_on() && was_sent_ && callbacks_.on_sent) callbacks_.on_sent();
    if (goes_on() && callbacks_.on_body) callbacks_.on_body(body);
    if (!is_unknown || std::exchange(is_over_, true)) return;
    // Nothing that follows matters, and it may never end.
    call_.drop();
    if (callbacks_.on_complete) callbacks_.on_complete();
  }
  void stop_doubting() {
    if (timer_ != 0) loop_->cancel(std::exchange(timer_, 0));
    doubted_.reset();
    body_.clear();
  }
  /// Lets the authorizer deal with the reply if it is a refusal.
  void judge(const HttpReplyHead& head) {
    if (head.status == kUnauthorized || head.status == kForbidden) {
      is_refused_ = authorizer_->on_refused(
          head, credential_, [weak = weak_from_this(), status = head.status](Result<void> verdict) {
            if (const auto self = weak.lock()) self->on_verdict(status, std::move(verdict));
          });
      if (is_refused_ || is_over_) return;
    }
    pass_on(head);
  }
  void pass_on(const HttpReplyHead& head) {
    // It is not sent again.
    request_.body = std::string();
    if (callbacks_.on_head) callbacks_.on_head(head);
  }
  void on_authorized(Result<RequestAuthorization> made) {
    if (is_over_) return;
    if (!made) {
      if (!is_starting_) return fail(made.error());
      loop_->post([self = shared_from_this(), why = made.error()] { self->fail(why); });
      return;
    }
    ++attempts_;
    credential_ = made->credential;
    if (made->headers.empty()) {
      call_ = http_->send(request_, callbacks_of(weak_from_this()));
    } else {
      HttpClientRequest request = request_;
      add_authorization(request.headers, std::move(made->headers));
      call_ = http_->send(request, callbacks_of(weak_from_this()));
    }
    if (is_paused_) call_.pause(true);
  }

  void on_verdict(int status, Result<void> verdict) {
    if (is_over_) return;
    // The reply may be under way still, and this function may be called by it.
    loop_->post([weak = weak_from_this(), status, verdict = std::move(verdict)] {
      const auto self = weak.lock();
      if (self == nullptr || self->is_over_) return;
      if (!verdict) return self->fail(verdict.error());
      if (self->attempts_ < kMaxAttempts) return self->authorize();
      self->fail({status,
                  "The server answers with HTTP " + std::to_string(status) + " to each of " +
                      std::to_string(kMaxAttempts) +
                      " requests, although they were authorized anew",
                  {}});
    });
  }
  void fail(const Error& why) {
    if (std::exchange(is_over_, true)) return;
    call_.drop();
    if (callbacks_.on_failure) callbacks_.on_failure(why);
  }

  EventLoop* loop_;
  std::shared_ptr<HttpClient> http_;
  std::shared_ptr<RequestAuthorizer> authorizer_;
  HttpClientRequest request_;
  HttpReplyCallbacks callbacks_;
  HttpClient::Call call_;
  std::uint64_t credential_ = 0;
  /// A 401 to a request of a session, until its body has come, and as much of that as matters.
  std::optional<KeptHead> doubted_;
  std::string body_;
  Executor::TimerId timer_ = 0;  // how long that may take
  int attempts_ = 0;
  bool is_paused_ = false;
  bool was_sent_ = false;     // on_sent() was called for the reply
  bool is_starting_ = false;  // a failure must be told later
  bool is_refused_ = false;   // the authorizer deals with the reply
  bool is_over_ = false;
};

void AuthorizedHttp::Call::pause(bool is_paused) {
  if (exchange_ != nullptr) exchange_->pause(is_paused);
  plain_.pause(is_paused);
}

void AuthorizedHttp::Call::drop() {
  if (const auto exchange = std::exchange(exchange_, nullptr)) exchange->drop();
  plain_.drop();
}

AuthorizedHttp::AuthorizedHttp(EventLoop& loop, const HttpClientOptions& options,
                               std::shared_ptr<RequestAuthorizer> authorizer)
    : loop_(&loop),
      http_(std::make_shared<HttpClient>(loop, options)),
      authorizer_(std::move(authorizer)) {}

AuthorizedHttp::Call AuthorizedHttp::send(HttpClientRequest request, HttpReplyCallbacks callbacks) {
  Call call;
  if (authorizer_ == nullptr) {
    call.plain_ = http_->send(request, std::move(callbacks));
    return call;
  }
  call.exchange_ =
      make_shared_recycled<Call::Exchange>(*this, std::move(request), std::move(callbacks));
  call.exchange_->authorize();
  return call;
}

void AuthorizedHttp::send_last(HttpClientRequest request, Duration patience,
                               std::function<void()> done) {
  /// Kept by the timer alone, so that nothing of it is left if the loop goes first.
  struct Last {
    Executor* loop;
    std::shared_ptr<HttpClient> http;
    std::shared_ptr<RequestAuthorizer> authorizer;  // or null
    HttpClientRequest request;
    std::function<void()> done;
    HttpClient::Call call = {};
    Executor::TimerId timer = 0;
    int attempts = 0;
    bool wants_nonce = false;  // another one (RFC 9449, section 9)
    void send(const std::shared_ptr<Last>& self) {
      ++attempts;
      if (authorizer == nullptr) return send(self, request);
      authorizer->authorize(request.method, request.url, [self](Result<RequestAuthorization> made) {
        if (self->timer == 0) return;  // it came too late
        if (!made) return self->end(self);
        HttpClientRequest authorized = self->request;
        add_authorization(authorized.headers, std::move(made->headers));
        self->send(self, authorized);
      });
    }
    void send(const std::shared_ptr<Last>& self, const HttpClientRequest& authorized) {
      const auto end = [weak = std::weak_ptr(self)] {
        if (const auto last = weak.lock()) last->on_end(last);
      };
      call = http->send(authorized, {.on_connected = {},
                                     .on_head =
                                         [weak = std::weak_ptr(self)](const HttpReplyHead& head) {
                                           if (const auto last = weak.lock()) last->on_head(head);
                                         },
                                     .on_body = {},
                                     .on_complete = end,
                                     .on_failure = [end](const Error&) { end(); }});
    }
    void on_head(const HttpReplyHead& head) {
      if (authorizer == nullptr) return;
      authorizer->on_reply(head);
      wants_nonce = head.status == kUnauthorized && !head.header("DPoP-Nonce").empty();
    }
    void on_end(const std::shared_ptr<Last>& self) {
      const bool is_refused = std::exchange(wants_nonce, false) && attempts == 1;
      if (!is_refused) return end(self);
      // Not within a callback of the request before.
      loop->post([self] {
        if (self->timer != 0) self->send(self);
      });
    }
    void end(const std::shared_ptr<Last>& self) {
      // The connections go with the client, but not within one of its callbacks.
      loop->post([self, last_use = std::move(http)] {});
      loop->cancel(std::exchange(timer, 0));
      call.drop();
      if (const auto told = std::exchange(done, {})) told();
    }
  };
  const auto last = std::make_shared<Last>(Last{.loop = loop_,
                                                .http = http_,
                                                .authorizer = authorizer_,
                                                .request = std::move(request),
                                                .done = std::move(done)});
  last->timer = loop_->schedule_at(loop_->clock().now() + patience, [last] { last->end(last); });
  last->send(last);
}

}  // namespace sluice

#include "cli/doctor/server/http_requester.hpp"

#include <algorithm>
#include <condition_variable>
#include <future>
#include <mutex>
#include <optional>
#include <utility>

#include "cli/doctor/server/check_table.hpp"
#include "cli/login/authorization_flags.hpp"
#include "client/authorization/authorizer.hpp"
#include "client/authorization/guarded_http.hpp"
#include "client/authorization/telling_authorizer.hpp"
#include "core/text/text.hpp"
#include "net/http/sse.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {
namespace {

constexpr Duration kFarewellPatience = std::chrono::seconds(2);

/// Waits on this thread for what `start` begins on the loop. `start` gets a function that takes the
/// outcome, and that must be called once.
template <class T>
T wait_on_loop(EventLoop& loop, std::function<void(std::function<void(T)>)> start) {
  const auto promise = std::make_shared<std::promise<T>>();
  std::future<T> outcome = promise->get_future();
  loop.post([start = std::move(start), promise] {
    start([promise](T value) { promise->set_value(std::move(value)); });
  });
  return outcome.get();
}

std::unexpected<Error> interrupted() {
  return sluice::fail(kLimitReached, "not examined: the examination was interrupted");
}

std::string in_seconds(Duration duration) {
  const auto tenths = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count() / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

}  // namespace

struct HttpRequester::OnLoop {
  OnLoop(EventLoop& event_loop, const HttpRequesterOptions& options)
      : loop(&event_loop),
        guarded(event_loop, {.server = options.server,
                             .tls = options.tls,
                             .proxies = options.proxies,
                             .timeout = std::chrono::seconds(5)}),
        client(event_loop, {.dial = options.dial,
                            .proxies = options.proxies,
                            .tls = options.tls,
                            .may_connect = [this](const Endpoint& endpoint) {
                              guarded.server_is_at(endpoint);
                              if (authorizer != nullptr) authorizer->on_address(endpoint);
                              return true;
                            }}) {
    if (!options.uses_logins) return;
    // Without a usable file of tokens the requests are sent without one.
    auto stored = stored_authorization(options.server);
    if (!stored || stored->token_file.empty()) return;
    authorizer = telling_authorizer(make_authorizer(event_loop, options.server, *std::move(stored),
                                                    options.tls, options.proxies),
                                    options.secrets);
  }

  EventLoop* loop;
  GuardedHttp guarded;
  std::shared_ptr<RequestAuthorizer> authorizer = {};  // may be null
  HttpClient client;
};

/// One request and what comes of its reply.
class HttpRequester::Exchange final : public std::enable_shared_from_this<Exchange> {
 public:
  using Done = std::function<void(Result<Reply>)>;

  Exchange(std::shared_ptr<OnLoop> on_loop, const Ask& ask, Duration patience, std::stop_token stop,
           Done done)
      : on_loop_(std::move(on_loop)),
        stop_(std::move(stop)),
        until_(ask.until),
        patience_(patience),
        is_anonymous_(ask.is_anonymous),
        done_(std::move(done)) {}

  void start(HttpClientRequest request) {
    EventLoop& loop = *on_loop_->loop;
    begun_at_ = loop.clock().now();
    timer_ = loop.schedule_at(begun_at_ + patience_, [self = shared_from_this()] {
      self->timer_ = 0;
      self->on_time_over();
    });
    stopped_.emplace(stop_, [&loop, weak = weak_from_this()] {
      loop.post([weak] {
        if (const auto self = weak.lock()) self->break_off(interrupted().error());
      });
    });
    if (on_loop_->authorizer == nullptr || is_anonymous_) return send(request);
    const std::string method = request.method;
    const Url url = request.url;
    on_loop_->authorizer->authorize(method, url,
                                    [self = shared_from_this(), request = std::move(request)](
                                        Result<RequestAuthorization> made) mutable {
                                      if (made)
                                        add_fields(request.headers, std::move(made->headers));
                                      self->send(request);
                                    });
  }

 private:
  static void add_fields(HttpHeaderList& headers, HttpHeaderList more) {
    std::ranges::move(more, std::back_inserter(headers));
  }

  void send(const HttpClientRequest& request) {
    if (is_over_) return;
    const auto self = shared_from_this();
    call_ = on_loop_->client.send(
        request, {.on_head = [self](const HttpReplyHead& head) { self->on_head(head); },
                  .on_body = [self](std::string_view bytes) { self->on_body(bytes); },
                  .on_complete =
                      [self] {
                        self->reply_.is_whole = true;
                        self->finish(std::move(self->reply_));
                      },
                  .on_failure = [self](const Error& why) { self->break_off(why); }});
  }
  void on_head(const HttpReplyHead& head) {
    reply_.status = head.status;
    reply_.head_after = on_loop_->loop->clock().now() - begun_at_;
    reply_.retry_after = head.retry_after();
    for (const HeaderField& field : head.headers) {
      reply_.headers.emplace_back(field.name, field.value);
    }
  }
  void on_body(std::string_view bytes) {
    if (!reply_.body_after) reply_.body_after = on_loop_->loop->clock().now() - begun_at_;
    reply_.body.append(bytes.substr(0, Reply::kMaxBody - reply_.body.size()));
    bool is_enough = until_ == Until::first_bytes || reply_.body.size() == Reply::kMaxBody;
    if (reply_.is_event_stream()) {
      const Result<void> fed = decoder_.feed(bytes, [&](const SseEvent& event) {
        if (reply_.events.size() == Reply::kMaxEvents) return;
        reply_.events.push_back({.type = std::string(event.type),
                                 .data = std::string(event.data),
                                 .id = std::string(event.last_event_id)});
        is_enough = is_enough || until_ == Until::first_event || response_in(event.data);
      });
      is_enough = is_enough || !fed || reply_.events.size() == Reply::kMaxEvents;
    }
    if (is_enough) finish(std::move(reply_));
  }
  void on_time_over() {
    const std::string within = " within " + in_seconds(patience_);
    if (reply_.status == 0) return break_off(Error(kGatewayTimeout, "no reply" + within));
    // The head of a stream is enough, and a body that need not end if it has the answer.
    if (until_ != Until::answer || reply_.answer()) return finish(std::move(reply_));
    break_off(Error(kGatewayTimeout, "no answer" + within + ", only HTTP " +
                                         std::to_string(reply_.status) + " and " +
                                         std::to_string(reply_.body.size()) + " bytes"));
  }
  void break_off(Error why) {
    if (reply_.status == 0) return finish(std::unexpected(std::move(why)));
    reply_.cut_off = std::move(why);
    finish(std::move(reply_));
  }
  void finish(Result<Reply> outcome) {
    if (std::exchange(is_over_, true)) return;
    const auto self = shared_from_this();
    on_loop_->loop->cancel(std::exchange(timer_, 0));
    stopped_.reset();
    call_.drop();
    done_(std::move(outcome));
  }

  const std::shared_ptr<OnLoop> on_loop_;
  const std::stop_token stop_;
  std::optional<std::stop_callback<std::function<void()>>> stopped_;
  const Until until_;
  const Duration patience_;
  const bool is_anonymous_;
  const Done done_;
  HttpClient::Call call_;
  SseDecoder decoder_;
  Reply reply_;
  TimePoint begun_at_{};
  Executor::TimerId timer_ = 0;
  bool is_over_ = false;
};

HttpRequester::HttpRequester(HttpRequesterOptions options) : options_(std::move(options)) {
  EventLoop& loop = background_->loop();
  on_loop_ = wait_on_loop<std::shared_ptr<OnLoop>>(
      loop, [&](const auto& done) { done(std::make_shared<OnLoop>(loop, options_)); });
}

HttpRequester::~HttpRequester() {
  wait_on_loop<bool>(background_->loop(), [this](const auto& done) {
    on_loop_ = nullptr;
    done(true);
  });
}

Duration HttpRequester::left() const {
  return options_.deadline - std::chrono::steady_clock::now();
}

bool HttpRequester::pause(Duration time) {
  if (left() < time) return false;
  std::mutex mutex;
  std::condition_variable_any interrupt;
  std::unique_lock lock(mutex);
  interrupt.wait_for(lock, options_.stop, time, [] { return false; });
  return !options_.stop.stop_requested();
}

Result<void> HttpRequester::admit(bool is_farewell, Duration at_least) {
  if (!is_farewell && options_.stop.stop_requested()) return interrupted();
  if (at_least == Duration() && !has_time()) {
    return sluice::fail(kLimitReached, std::string(kTimeIsOver));
  }
  const std::size_t kept = is_farewell ? 0 : kFarewells;
  if (requests_ + kept >= options_.max_requests) {
    return sluice::fail(kLimitReached, "not examined: all " +
                                           std::to_string(options_.max_requests) +
                                           " requests of the examination are used");
  }
  ++requests_;
  return {};
}

Result<Reply> HttpRequester::ask(const Ask& ask) {
  const bool is_farewell = ask.method == "DELETE";
  const Duration at_least = is_farewell ? kFarewellPatience : ask.at_least;
  if (const Result<void> admitted = admit(is_farewell, at_least); !admitted) {
    return std::unexpected(admitted.error());
  }
  const Duration patience =
      is_farewell ? kFarewellPatience : std::max(std::min(ask.patience, left()), at_least);
  HttpClientRequest request{
      .method = ask.method, .url = options_.server, .headers = ask.headers, .body = ask.body};
  for (const auto& field : options_.headers) {
    const bool is_key = to_lower(field.first) == "authorization";
    if (ask.is_foreign || (ask.is_anonymous && is_key)) continue;
    request.headers.push_back(field);
  }
  return wait_on_loop<Result<Reply>>(background_->loop(), [&](const auto& done) {
    const std::stop_token stop = is_farewell ? std::stop_token() : options_.stop;
    std::make_shared<Exchange>(on_loop_, ask, patience, stop, done)->start(std::move(request));
  });
}

Result<OauthReply> HttpRequester::fetch(const std::string& url) {
  if (const Result<void> admitted = admit(false, {}); !admitted)
    return std::unexpected(admitted.error());
  return wait_on_loop<Result<OauthReply>>(background_->loop(), [&](const auto& done) {
    on_loop_->guarded.send({.url = url, .headers = {{"Accept", "application/json"}}}, done);
  });
}

}  // namespace sluice

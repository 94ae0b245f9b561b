#include "net/client/http_client.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>

#include "core/recycling.hpp"
#include "net/client/client_connection.hpp"
#include "net/http/http_reply_parser.hpp"
#include "net/http/request_head.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {
namespace {

template <class... Names>
bool is_one_of(std::string_view text, Names... names) {
  return ((text == names) || ...);
}

/// Whether a request may be sent twice (RFC 9110, section 9.2.2).
bool is_idempotent(std::string_view method) {
  return is_one_of(method, "GET", "HEAD", "OPTIONS", "PUT", "DELETE");
}

/// Room for the Content-Length field and the line that ends a head.
constexpr std::size_t kLengthField = 48;

/// Whether requests are read by the proxy, and not only passed on.
bool asks_proxy(const ConnectionRoute& route) {
  return route.proxy && !route.is_tunnelled;
}

}  // namespace

bool HttpReplyHead::is_event_stream() const {
  static constexpr std::string_view kType = "text/event-stream";
  return equals_ignoring_case(header("Content-Type").substr(0, kType.size()), kType);
}

std::optional<Duration> HttpReplyHead::retry_after() const {
  static constexpr Duration kLongest = std::chrono::seconds(30);
  const std::string_view text = header("Retry-After");
  std::uint32_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return std::min<Duration>(std::chrono::seconds(seconds), kLongest);
}

/// What a client's calls share. Outlives the client while there are calls.
struct HttpClient::State : std::enable_shared_from_this<State> {
  struct Kept {
    std::shared_ptr<ClientConnection> connection;
    TimePoint since;
  };

  State(EventLoop& event_loop, HttpClientOptions client_options)
      : loop(&event_loop), options(std::move(client_options)) {}

  /// A kept connection that leads to `url` by `route`, or null.
  std::shared_ptr<ClientConnection> take(const Url& url, const ConnectionRoute& route) {
    // The most recently used connection is the most likely to be open still.
    for (auto it = kept.rbegin(); it != kept.rend(); ++it) {
      if (!it->connection->is_open() || !it->connection->leads_to(url, route)) continue;
      std::shared_ptr<ClientConnection> connection = std::move(it->connection);
      kept.erase(std::next(it).base());
      return connection;
    }
    return nullptr;
  }

  void keep(std::shared_ptr<ClientConnection> connection) {
    if (closed || kept.size() >= options.max_kept) {
      connection->close();
      return;
    }
    kept.push_back({std::move(connection), loop->clock().now()});
    arm_sweep();
  }

  void arm_sweep() {
    if (sweep_timer != 0 || kept.empty()) return;
    sweep_timer = loop->schedule_at(kept.front().since + options.keep_idle,
                                    [state = shared_from_this()] { state->sweep(); });
  }

  void sweep() {
    sweep_timer = 0;
    const TimePoint now = loop->clock().now();
    std::erase_if(kept, [&](const Kept& entry) {
      const bool stale = now - entry.since >= options.keep_idle || !entry.connection->is_open();
      if (stale) entry.connection->close();
      return stale;
    });
    arm_sweep();
  }

  void close() {
    closed = true;
    loop->cancel(std::exchange(sweep_timer, 0));
    for (const Kept& entry : kept) entry.connection->close();
    kept.clear();
    // Breaks a cycle: each call refers to this state.
    aside.clear();
  }

  EventLoop* loop;
  HttpClientOptions options;
  std::vector<Kept> kept;  // in the order of their last use
  std::vector<std::pair<std::uint64_t, Call>> aside;
  std::uint64_t last_aside = 0;
  Executor::TimerId sweep_timer = 0;
  bool closed = false;
};

/// One request and its reply.
class HttpClient::Call::Exchange final : public std::enable_shared_from_this<Exchange>,
                                         private ClientConnection::Owner,
                                         private HttpReplySink {
 public:
  Exchange(std::shared_ptr<State> state, HttpReplyCallbacks callbacks)
      : state_(std::move(state)), callbacks_(std::move(callbacks)) {}

  void start(const HttpClientRequest& request) {
    Result<std::string> head = make_head(request);
    if (!head) {
      state_->loop->post(
          [self = shared_from_this(), error = std::move(head.error())] { self->fail_with(error); });
      return;
    }
    if (state_->options.tap) tap_request(request);
    text_ = std::move(*head);
    if (!request.body.empty() || is_one_of(request.method, "POST", "PUT", "PATCH")) {
      text_.append("Content-Length: ").append(std::to_string(request.body.size())).append("\r\n");
    }
    text_.append("\r\n").append(request.body);
    head_request_ = request.method == "HEAD";
    is_patient_ = request.is_patient;
    is_trickle_ = request.is_trickle;
    idempotent_ = is_idempotent(request.method);
    url_ = request.url;
    connection_ = state_->take(url_, route_);
    reused_ = connection_ != nullptr;
    begin();
  }

  void pause(bool is_paused) {
    is_paused_ = is_paused;
    if (connection_ != nullptr) connection_->pause(is_paused);
    if (!is_paused) heard_at_ = state_->loop->clock().now();
  }

  /// Ends the request without any further callback.
  void drop() {
    if (std::exchange(ended_, true)) return;
    release_timer();
    if (const auto connection = std::exchange(connection_, nullptr)) {
      connection->set_owner(nullptr);
      connection->close();
    }
  }

 private:
  /// Decides the route, and makes the head for it.
  Result<std::string> make_head(const HttpClientRequest& request) {
    const HttpClientOptions& options = state_->options;
    Result<ConnectionRoute> route =
        route_to(request.url, options.dial, options.proxies.get(), request.url.is_tls());
    if (!route) return std::unexpected(std::move(route.error()));
    route_ = *std::move(route);
    const std::size_t room = kLengthField + request.body.size();
    if (!asks_proxy(route_)) {
      return make_request_head(request.method, request.url, request.headers, TargetForm::origin,
                               room);
    }
    HttpHeaderList headers = request.headers;
    if (!route_.proxy->credentials.empty()) {
      headers.emplace_back("Proxy-Authorization", route_.proxy->credentials);
    }
    return make_request_head(request.method, request.url, headers, TargetForm::absolute, room);
  }
  void tap_request(const HttpClientRequest& request) const {
    std::vector<HeaderField> fields;
    for (const auto& [name, value] : request.headers) fields.push_back({name, value});
    state_->options.tap({.method = request.method,
                         .url = &request.url,
                         .headers = std::span<const HeaderField>(fields)});
  }
  void begin() {
    const bool connects = connection_ == nullptr;
    if (connects) {
      connection_ =
          std::make_shared<ClientConnection>(*state_->loop, url_, state_->options.tls, route_);
      connection_->restrict_to(state_->options.may_connect);
    }
    parser_.emplace(static_cast<HttpReplySink&>(*this), state_->options.max_head, head_request_);
    connection_->set_owner(this);
    connection_->pause(is_paused_);
    // It is needed again only if it may be sent again.
    connection_->write(may_retry() ? text_ : std::move(text_));
    // A new connection delays none as long as it is new.
    if (is_trickle_ && !connects) connection_->acknowledge_at_once();
    if (connects) {
      connection_->connect(state_->options.connect_timeout);
    } else if (callbacks_.on_connected) {
      state_->loop->post([weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->on_established();
      });
    }
    heard_at_ = state_->loop->clock().now();
    arm_timer();
  }

  void on_established() override {
    const auto self = shared_from_this();
    if (!ended_ && callbacks_.on_connected) callbacks_.on_connected();
  }

  void on_drained() override {
    const auto self = shared_from_this();
    tell_if_sent();
  }
  void tell_if_sent() {
    if (ended_ || !has_head_ || connection_->queued_bytes() > 0) return;
    if (auto told = std::exchange(callbacks_.on_sent, {})) told();
  }

  void on_bytes(std::span<char> bytes) override {
    const auto self = shared_from_this();
    heard_at_ = state_->loop->clock().now();
    heard_ = true;
    const Result<void> fed = parser_->feed({bytes.data(), bytes.size()});
    if (ended_) return;
    if (!fed) {
      fail_with(fed.error());
    } else if (parser_->done()) {
      // A server that has not read the whole request may never do so.
      complete(parser_->keep_alive() && parser_->rest().empty() &&
               connection_->queued_bytes() == 0);
    }
  }

  void on_end() override {
    const auto self = shared_from_this();
    if (retry()) return;
    const Result<void> whole = parser_->end();
    if (ended_) return;
    if (whole) {
      complete(false);
    } else {
      fail_with(whole.error());
    }
  }

  void on_failure(const Error& error) override {
    const auto self = shared_from_this();
    if (!retry()) fail_with(error);
  }

  bool on_head(int status, std::span<const HeaderField> headers) override {
    if (status == kSwitchingProtocols) {
      fail_with({kBadGateway, "The server switched protocols without being asked to"});
      return false;
    }
    if (asks_proxy(route_)) {
      if (const auto error = proxy_error(*route_.proxy, status, headers)) {
        fail_with(*error);
        return false;
      }
    }
    if (const HttpTap& tap = state_->options.tap) {
      tap({.url = &url_, .status = status, .headers = headers});
    }
    if (callbacks_.on_head) callbacks_.on_head({.status = status, .headers = headers});
    has_head_ = true;
    tell_if_sent();
    return !ended_;
  }

  bool on_body(std::string_view bytes) override {
    if (callbacks_.on_body) callbacks_.on_body(bytes);
    return !ended_;
  }

  [[nodiscard]] bool may_retry() const { return reused_ && idempotent_; }
  /// Sends the request again if a kept connection turns out to have been closed.
  bool retry() {
    if (!may_retry() || heard_ || ended_) return false;
    reused_ = false;
    release_timer();
    connection_->set_owner(nullptr);
    connection_->close();
    connection_ = nullptr;
    begin();
    return true;
  }

  void complete(bool keep) {
    ended_ = true;
    release_timer();
    std::shared_ptr<ClientConnection> connection = std::exchange(connection_, nullptr);
    connection->set_owner(nullptr);
    connection->pause(false);
    if (keep) {
      state_->keep(std::move(connection));
    } else {
      connection->close();
    }
    if (callbacks_.on_complete) callbacks_.on_complete();
  }

  void fail_with(const Error& error) {
    if (ended_) return;
    drop();
    if (callbacks_.on_failure) callbacks_.on_failure(error);
  }

  void arm_timer() {
    if (is_patient_) return;
    timer_ = state_->loop->schedule_at(heard_at_ + state_->options.idle_timeout,
                                       [weak = weak_from_this()] {
                                         if (const auto self = weak.lock()) self->on_timer();
                                       });
  }

  void on_timer() {
    timer_ = 0;
    if (ended_) return;
    if (is_paused_) heard_at_ = state_->loop->clock().now();
    if (state_->loop->clock().now() - heard_at_ < state_->options.idle_timeout) {
      arm_timer();
    } else {
      fail_with({kGatewayTimeout, url_.authority() + " sent nothing for too long"});
    }
  }

  void release_timer() { state_->loop->cancel(std::exchange(timer_, 0)); }

  std::shared_ptr<State> state_;
  HttpReplyCallbacks callbacks_;
  Url url_;
  ConnectionRoute route_;
  std::string text_;  // the request; empty once it need not be sent again
  std::shared_ptr<ClientConnection> connection_;
  std::optional<HttpReplyParser> parser_;
  TimePoint heard_at_{};
  Executor::TimerId timer_ = 0;
  bool head_request_ = false;
  bool is_patient_ = false;
  bool is_trickle_ = false;
  bool is_paused_ = false;
  bool idempotent_ = false;
  bool reused_ = false;
  bool heard_ = false;  // any byte of the reply
  bool has_head_ = false;
  bool ended_ = false;
};

void HttpClient::Call::pause(bool is_paused) {
  if (exchange_ != nullptr) exchange_->pause(is_paused);
}

void HttpClient::Call::drop() {
  if (const auto exchange = std::exchange(exchange_, nullptr)) exchange->drop();
}

HttpClient::HttpClient(EventLoop& loop, HttpClientOptions options)
    : state_(std::make_shared<State>(loop, std::move(options))) {}

HttpClient::~HttpClient() {
  state_->close();
}

HttpClient::Call HttpClient::send(const HttpClientRequest& request, HttpReplyCallbacks callbacks) {
  auto exchange = make_shared_recycled<Call::Exchange>(state_, std::move(callbacks));
  exchange->start(request);
  return Call(std::move(exchange));
}

void HttpClient::send_aside(const HttpClientRequest& request) {
  const std::uint64_t id = ++state_->last_aside;
  const auto forget = [weak = std::weak_ptr(state_), id] {
    if (const auto state = weak.lock()) {
      std::erase_if(state->aside, [id](const auto& entry) { return entry.first == id; });
    }
  };
  HttpReplyCallbacks callbacks;
  callbacks.on_complete = forget;
  callbacks.on_failure = [forget](const Error&) { forget(); };
  if (state_->aside.size() >= kMaxAside) state_->aside.erase(state_->aside.begin());
  state_->aside.emplace_back(id, send(request, std::move(callbacks)));
}

}  // namespace sluice

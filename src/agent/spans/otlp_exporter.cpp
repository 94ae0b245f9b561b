#include <algorithm>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/spans/otlp_request.hpp"
#include "agent/spans/span_queue.hpp"
#include "client/api/background_loop.hpp"
#include "client/api/open_link.hpp"
#include "client/reply.hpp"
#include "core/clock.hpp"
#include "core/executor.hpp"
#include "core/log/log.hpp"
#include "json/json.hpp"
#include "json/members.hpp"
#include "net/client/http_client.hpp"
#include "net/client/proxy_settings.hpp"
#include "net/http/url.hpp"
#include "net/io/tls.hpp"
#include "rpc/error_codes.hpp"
#include "sluice/error.hpp"
#include "sluice/spans.hpp"

namespace sluice {
namespace {

using Outcome = SpanQueue::Outcome;

/// One request. Owned by shared pointers.
class ExportReply {
 public:
  explicit ExportReply(SpanQueue::Done done) : done_(std::move(done)) {}

  void on_head(const HttpReplyHead& head) {
    wait_ = head.retry_after();
    body_.begin(head.status);
  }
  void on_body(std::string_view bytes) {
    // What a collector says is short.
    constexpr std::size_t kMaxReply = std::size_t{64} << 10U;
    if (body_.text().size() + bytes.size() > kMaxReply || !body_.append(bytes)) on_complete();
  }
  void on_complete() {
    const int status = body_.status();
    if (status / 100 == 2) {
      log_partial_success();
      return end({});
    }
    end({.kind = is_passing_trouble(status) ? Outcome::Kind::try_again : Outcome::Kind::refused,
         .why = "the collector has answered with the status " + std::to_string(status),
         .wait = wait_});
  }
  void on_failure(const Error& why) { end({.kind = Outcome::Kind::try_again, .why = why.message}); }

 private:
  /// The collector may refuse some of the spans (OTLP 1, Partial Success).
  void log_partial_success() const {
    const Result<json::value> reply = parse_json(body_.text());
    if (!reply || !reply->is_object()) return;
    const json::object* const partial = object_at(reply->get_object(), "partialSuccess");
    const std::string_view why =
        partial == nullptr ? std::string_view() : text_at(*partial, "errorMessage");
    if (!why.empty()) log_error("the collector of spans has a complaint", {{"it", why}});
  }
  void end(Outcome outcome) {
    if (const auto done = std::exchange(done_, nullptr)) done(std::move(outcome));
  }

  SpanQueue::Done done_;
  ReplyBody body_;
  std::optional<Duration> wait_;
};

/// What belongs to the loop.
class Sender : public std::enable_shared_from_this<Sender> {
 public:
  Sender(EventLoop& loop, HttpClientRequest request, HttpClientOptions http, OtlpOptions options)
      : loop_(&loop),
        request_(std::move(request)),
        options_(std::move(options)),
        http_(loop, std::move(http)),
        queue_(loop,
               {.max_waiting = options_.max_waiting,
                .max_batch = std::max<std::size_t>(options_.max_batch, 1),
                .interval = at_most_forever(options_.interval)},
               [this](const std::vector<Span>& batch, SpanQueue::Done done) {
                 send(batch, std::move(done));
               }) {}
  ~Sender() {
    if (deadline_ != 0) loop_->cancel(deadline_);
  }
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  void add(Span span) { queue_.add(std::move(span)); }
  /// Sends what there is, and calls `done` once that is done or `patience` is over.
  void finish(std::function<void()> done) {
    finished_ = std::move(done);
    deadline_ =
        loop_->schedule_at(loop_->clock().now() + at_most_forever(options_.patience), [this] {
          deadline_ = 0;
          tell_finished();
        });
    queue_.flush([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->tell_finished();
    });
  }

 private:
  void send(const std::vector<Span>& batch, SpanQueue::Done done) {
    reply_ = std::make_shared<ExportReply>([this, done = std::move(done)](Outcome outcome) {
      call_.drop();
      done(std::move(outcome));
    });
    request_.body = otlp_request(batch, options_.service_name);
    call_ = http_.send(request_, callbacks_of(std::weak_ptr(reply_)));
    request_.body.clear();
  }
  void tell_finished() {
    if (const auto finished = std::exchange(finished_, nullptr)) finished();
  }

  EventLoop* loop_;
  HttpClientRequest request_;
  OtlpOptions options_;
  HttpClient http_;
  SpanQueue queue_;
  std::shared_ptr<ExportReply> reply_;
  HttpClient::Call call_;
  Executor::TimerId deadline_ = 0;
  std::function<void()> finished_;
};

class OtlpExporter final : public SpanExporter {
 public:
  OtlpExporter(const HttpClientRequest& request, const HttpClientOptions& http,
               const OtlpOptions& options) {
    on_loop(
        [&] { sender_ = std::make_shared<Sender>(background_->loop(), request, http, options); });
  }
  ~OtlpExporter() override {
    if (background_->loop().on_loop_thread()) {
      Sender& sender = *sender_;
      sender.finish([background = background_, kept = std::move(sender_)] {});
      return;
    }
    std::promise<void> finished;
    background_->loop().post([this, &finished] {
      sender_->finish([this, &finished] {
        // Not within its own function.
        background_->loop().post([this, &finished] {
          sender_.reset();
          finished.set_value();
        });
      });
    });
    finished.get_future().wait();
  }
  OtlpExporter(const OtlpExporter&) = delete;
  OtlpExporter& operator=(const OtlpExporter&) = delete;

  /// See BackgroundLoop.
  [[nodiscard]] bool is_of_parent() const { return background_->is_of_parent(); }

  void take(Span span) override {
    if (is_of_parent()) return;
    if (background_->loop().on_loop_thread()) return sender_->add(std::move(span));
    background_->loop().post(
        [sender = sender_, span = std::move(span)]() mutable { sender->add(std::move(span)); });
  }

 private:
  template <class Work>
  void on_loop(Work work) {
    if (background_->loop().on_loop_thread()) return work();
    std::promise<void> done;
    background_->loop().post([&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }

  const std::shared_ptr<BackgroundLoop> background_ = BackgroundLoop::shared();
  std::shared_ptr<Sender> sender_;
};

}  // namespace

std::shared_ptr<SpanExporter> otlp_exporter(OtlpOptions options) {
  const auto require = [](const auto& outcome, const std::string& what) {
    if (!outcome) throw Error{kInvalidParams, what + ": " + outcome.error().message, {}};
  };
  const Result<Url> url = parse_url(options.url);
  require(url, "the URL of the collector");
  if (url->is_websocket()) {
    throw Error{kInvalidParams, "the URL of the collector: it begins with http:// or https://", {}};
  }
  auto headers = own_headers({options.headers.begin(), options.headers.end()});
  require(headers, "a header for the collector");
  headers->emplace_back("Content-Type", "application/json");
  HttpClientOptions http{.proxies = environment_proxies()};
  if (url->is_tls()) {
    auto tls = TlsContext::client({});
    require(tls, "TLS");
    http.tls = *std::move(tls);
  }
  const HttpClientRequest request{.method = "POST", .url = *url, .headers = *std::move(headers)};
  return {new OtlpExporter(request, http, options), [](const OtlpExporter* exporter) {
            if (!exporter->is_of_parent()) delete exporter;
          }};
}

}  // namespace sluice

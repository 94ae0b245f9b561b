#include "server/transport/http/http_endpoint.hpp"

#include <algorithm>
#include <array>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/log/log.hpp"
#include "core/recycling.hpp"
#include "core/text/field_value.hpp"
#include "core/text/text.hpp"
#include "net/http/status_codes.hpp"
#include "rpc/error_codes.hpp"
#include "server/dispatch/batch.hpp"
#include "server/transport/http/http_channel.hpp"
#include "server/transport/http/http_fields.hpp"
#include "server/transport/http/http_refusal.hpp"
#include "server/transport/http/message_body.hpp"

namespace sluice {
namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kText = "text/plain; charset=utf-8";

/// Begins the session of an `initialize` of `principal`; null if this server has no sessions.
Result<std::shared_ptr<Session>> begin_session_of(const Service& service,
                                                  const std::string& principal,
                                                  const Revision& revision,
                                                  const ClientDescription& client) {
  if (!service.sessions->enabled()) return nullptr;
  return service.sessions->create(principal, revision, client);
}

/// The caller of one POST, for after on_request() has returned.
class RetainedHttpCaller final : public Caller,
                                 public std::enable_shared_from_this<RetainedHttpCaller> {
 public:
  RetainedHttpCaller(const HttpRequest& request, const Service& service, Principal principal,
                     std::shared_ptr<HttpChannel> channel)
      : head_(request),
        service_(&service),
        principal_(std::move(principal)),
        channel_(std::move(channel)) {}

  [[nodiscard]] const MirroredHeaders& headers() const { return headers_; }
  [[nodiscard]] const Principal& principal() const override { return principal_; }
  Result<std::shared_ptr<ReplyChannel>> open_channel(const RequestId& /*id*/) override {
    return channel_;
  }
  Result<std::shared_ptr<Session>> session() override { return nullptr; }
  Result<std::shared_ptr<Session>> begin_session(const Revision& revision,
                                                 const ClientDescription& client) override {
    Result<std::shared_ptr<Session>> begun =
        begin_session_of(*service_, principal_.id, revision, client);
    if (begun && *begun != nullptr) channel_->set_begun(*begun);
    return begun;
  }
  [[nodiscard]] std::optional<std::string> field(std::string_view name) const override {
    return single_field(head_.get(), name);
  }
  RetainedCaller keep() override { return {shared_from_this(), &headers_}; }

 private:
  RequestHeadCopy head_;
  RequestFields fields_{head_.get()};
  MirroredHeaders headers_ = mirrored_headers(head_.get(), fields_);
  const Service* service_;
  Principal principal_;
  std::shared_ptr<HttpChannel> channel_;  // null for notifications
};

/// Whether it matters who asks. It does not for what a load balancer or a monitor reads.
bool has_caller(HttpRoute route) {
  return route != HttpRoute::health && route != HttpRoute::readiness &&
         route != HttpRoute::metrics && route != HttpRoute::preflight;
}

/// The caller of one POST. If its principal is not known yet, it is determined when it is needed.
class HttpCaller final : public Caller {
 public:
  HttpCaller(const HttpRequest& request, const HttpExchangePtr& exchange, const Service& service,
             Principal principal)
      : request_(&request),
        exchange_(&exchange),
        service_(&service),
        principal_(std::move(principal)) {}

  [[nodiscard]] const Principal& principal() const override {
    if (principal_.id.empty()) principal_ = service_->access->principal_by_address(*request_);
    return principal_;
  }

  Result<std::shared_ptr<ReplyChannel>> open_channel(const RequestId& id) override {
    auto channel = make_shared_recycled<HttpChannel>(
        *exchange_, acceptance(*request_, "text/event-stream", "text/*"));
    if (session_ != nullptr && !id.empty()) {
      if (Result<void> added = channel->make_cancellable(session_, id); !added) {
        return std::unexpected(std::move(added.error()));
      }
    }
    if (begun_ != nullptr) channel->set_begun(begun_);
    channel_ = channel;
    return channel;
  }

  Result<std::shared_ptr<Session>> session() override {
    const std::string_view id = request_->header(KnownHeader::mcp_session_id);
    if (id.data() == nullptr || !service_->sessions->enabled()) return nullptr;
    session_ = service_->sessions->find(id, principal().id);
    if (session_ == nullptr) return fail(kInvalidRequest, std::string(kNoSuchSession));
    return session_;
  }

  Result<std::shared_ptr<Session>> begin_session(const Revision& revision,
                                                 const ClientDescription& client) override {
    Result<std::shared_ptr<Session>> begun =
        begin_session_of(*service_, principal().id, revision, client);
    begun_ = begun.value_or(nullptr);
    return begun;
  }

  [[nodiscard]] std::optional<std::string> field(std::string_view name) const override {
    return single_field(*request_, name);
  }

  RetainedCaller keep() override {
    auto kept = std::make_shared<RetainedHttpCaller>(*request_, *service_, principal(), channel_);
    const MirroredHeaders* const headers = &kept->headers();
    return {std::move(kept), headers};
  }

  /// Answers a request that was cancelled before it was known.
  void cancel() {
    make_shared_recycled<HttpChannel>(*exchange_,
                                      acceptance(*request_, "text/event-stream", "text/*"))
        ->cancel();
  }

  /// The session that this message has begun, or null.
  [[nodiscard]] const Session* begun() const { return begun_.get(); }

 private:
  const HttpRequest* request_;
  const HttpExchangePtr* exchange_;
  const Service* service_;
  mutable Principal principal_;
  std::shared_ptr<HttpChannel> channel_;  // the last that was opened
  std::shared_ptr<Session> session_;
  std::shared_ptr<Session> begun_;
};

struct Verdict final : HeadVerdict {
  using Admission = std::expected<HttpAdmission::Admitted, HttpRefusal>;
  /// The sender is refused.
  Verdict() : HeadVerdict(false) {}
  Verdict(Admission decided, std::shared_ptr<MemoryShare> client, std::uint32_t replaced)
      : HeadVerdict(decided.has_value(), std::move(client)),
        admitted(std::move(decided)),
        replacements(replaced) {}
  /// Who asks, if it is known from the head.
  [[nodiscard]] std::string principal() const {
    return admitted && *admitted ? (*admitted)->principal.id : std::string();
  }
  std::optional<Admission> admitted = {};
  /// How often the authenticator had been replaced.
  std::uint32_t replacements = 0;
};

/// The header lines that let the page that sent `request` read the reply, including an error.
std::string lines_for_page(const HttpRequest& request) {
  return "Access-Control-Allow-Origin: " + std::string(request.header(KnownHeader::origin)) +
         "\r\nVary: Origin\r\nAccess-Control-Expose-Headers: Mcp-Session-Id\r\n";
}

/// Whether the server writes the field itself. A second one would contradict it.
bool is_own_field(std::string_view name) {
  static constexpr std::array<std::string_view, 8> kOwn = {"Access-Control-Allow-Origin",
                                                           "Connection",
                                                           "Content-Length",
                                                           "Content-Type",
                                                           "Date",
                                                           "Keep-Alive",
                                                           "Trailer",
                                                           "Transfer-Encoding"};
  return std::ranges::any_of(
      kOwn, [name](std::string_view own) { return equals_ignoring_case(name, own); });
}

/// Why a reply cannot be sent; empty if it can.
std::string fault_of(const RouteReply& reply) {
  if (reply.status < 200 || reply.status > 599) return "its status is not 200 to 599";
  if (!may_have_content(reply.status) && !reply.body.empty()) {
    return "its status does not go with a body";
  }
  if (!is_field_value(reply.content_type)) return "its content type has a control character";
  for (const auto& [name, value] : reply.headers) {
    if (name.empty() || !std::ranges::all_of(name, is_token_char)) {
      return "a field has no valid name";
    }
    if (is_own_field(name)) return "the server itself writes the field " + name;
    if (!is_field_value(value)) return "the field " + name + " has a control character";
  }
  return {};
}

}  // namespace

HttpEndpoint::HttpEndpoint(Service& service, Options options)
    : service_(&service),
      options_(std::move(options)),
      admission_(*service.access, options_.paths, service.sessions->enabled()),
      sse_(service),
      session_(service),
      websocket_(service),
      sse_sessions_(service, options_.sse_sessions) {}

void HttpEndpoint::on_request(const HttpRequest& request, HttpExchangePtr exchange) {
  answer(request, std::move(exchange));
  service_->trim();
}

/// Logs a request that is refused for its host, its origin or its credentials.
void HttpEndpoint::log_refusal(const HttpRequest& request, const HttpRefusal& refusal) {
  const auto left_out = logged_refusals_.take();
  if (!left_out) return;
  log_warning("a request is refused", {{"why", std::string_view(refusal.message)},
                                       {"path", request.path},
                                       {"peer", request.peer.to_string()},
                                       {"client", service_->access->address(request)},
                                       {"left_out", *left_out}});
}

std::unique_ptr<HeadVerdict> HttpEndpoint::judge(const HttpRequest& head) {
  // The reason is not kept. answer() finds it again, which asks no authenticator.
  if (admission_.refusal_of_sender(head)) return std::make_unique<Verdict>();
  Verdict::Admission admitted = admit(head);
  std::shared_ptr<MemoryShare> client;
  if (admitted) client = memory_of(head, admitted->principal);
  return std::make_unique<Verdict>(std::move(admitted), std::move(client),
                                   service_->access->replacements());
}

std::expected<HttpAdmission::Admitted, HttpRefusal> HttpEndpoint::admit(const HttpRequest& head) {
  if (!service_->access->asks_user_code()) return admission_.admit(head);
  TurnWatch& watch = service_->dispatcher.watch();
  watch.begin({"authenticator", {}});
  std::expected<HttpAdmission::Admitted, HttpRefusal> admitted = admission_.admit(head);
  watch.end();
  return admitted;
}

/// The share of `principal`, or of the client's address if the principal is not known yet. The last
/// share is remembered, because most requests of a loop come from the client of the one before.
std::shared_ptr<MemoryShare> HttpEndpoint::memory_of(const HttpRequest& head,
                                                     const Principal& principal) {
  std::string who = principal.id.empty() ? service_->access->address(head) : principal.id;
  if (last_client_ == nullptr || who != last_principal_) {
    last_client_ = service_->memory_of(who);
    last_principal_ = std::move(who);
  }
  return last_client_;
}

std::string HttpEndpoint::head_lines(const HttpRequest& head) const {
  const bool is_of_page = head.has(KnownHeader::origin) && !admission_.refusal_of_sender(head);
  return is_of_page ? lines_for_page(head) : std::string();
}

bool HttpEndpoint::streams_body(const HttpRequest& head) const {
  return is_message(head) && has_lines(head);
}

void HttpEndpoint::answer(const HttpRequest& request, HttpExchangePtr exchange) {
  if (const std::optional<HttpRefusal> refused = admission_.refusal_of_sender(request)) {
    log_refusal(request, *refused);
    refuse(*exchange, *refused);
    return;
  }
  if (request.has(KnownHeader::origin)) exchange->set_head_lines(lines_for_page(request));
  auto* const verdict = static_cast<Verdict*>(request.verdict);
  // A key that was good when the head came may have been removed since.
  const bool is_judged = verdict != nullptr && verdict->admitted &&
                         verdict->replacements == service_->access->replacements();
  std::expected<HttpAdmission::Admitted, HttpRefusal> admitted =
      is_judged ? std::move(*verdict->admitted) : admit(request);
  if (!admitted) {
    const int status = admitted.error().status;
    if (status == 401 || status == 403) log_refusal(request, admitted.error());
    refuse(*exchange, admitted.error());
    return;
  }
  // A connection that several clients share is charged to the client of its latest request.
  if (!exchange->is_charged() || service_->access->has_shared_connections()) {
    exchange->charge_to(memory_of(request, admitted->principal));
  }
  if (admitted->route == HttpRoute::message) {
    post_message(request, exchange, std::move(admitted->principal));
    return;
  }
  const Principal principal = admitted->principal.id.empty() && has_caller(admitted->route)
                                  ? service_->access->principal_by_address(request)
                                  : std::move(admitted->principal);
  switch (admitted->route) {
    case HttpRoute::message:
      return;
    case HttpRoute::messages:
      post_lines(request, exchange, principal);
      return;
    case HttpRoute::session_events:
      session_.get(request, std::move(exchange), principal.id);
      return;
    case HttpRoute::session_end:
      session_.remove(request, exchange, principal.id);
      return;
    case HttpRoute::sse:
      sse_sessions_.open(request, std::move(exchange), principal);
      return;
    case HttpRoute::sse_message:
      sse_sessions_.post(request, std::move(exchange), principal.id);
      return;
    case HttpRoute::websocket:
      if (service_->streams.draining()) {
        const Error refused = StreamService::shutting_down();
        refuse(*exchange, 503, refused.code, refused.message);
        return;
      }
      websocket_.open(request, *exchange, options_.websocket, principal,
                      single_fields(request, service_->first->definition().request_headers));
      return;
    case HttpRoute::stream:
      sse_.open(request, std::move(exchange), request.path.substr(HttpAdmission::kStreams.size()),
                principal.id);
      return;
    case HttpRoute::health:
      exchange->reply(200, kText, "ok\n");
      return;
    case HttpRoute::readiness:
      tell_readiness(*exchange);
      return;
    case HttpRoute::metrics:
      exchange->reply(200, "text/plain; version=0.0.4; charset=utf-8",
                      options_.metrics ? options_.metrics() : std::string());
      return;
    case HttpRoute::own:
      answer_own(*admitted->own, request, *exchange, principal);
      return;
    case HttpRoute::preflight:
      preflight(request, *exchange);
      return;
  }
}

bool HttpEndpoint::prepares_body(const HttpRequest& head, std::size_t size) const {
  return size > LongMessages::kLong && is_message(head) && !has_lines(head);
}

std::unique_ptr<PreparedBody> HttpEndpoint::prepare(const HttpRequest& head, std::string body,
                                                    Executor::Task ready) {
  const auto* const verdict = static_cast<const Verdict*>(head.verdict);
  std::string who = verdict == nullptr ? std::string() : verdict->principal();
  if (who.empty()) who = service_->access->address(head);
  auto message = service_->long_messages.parse(std::move(body), std::move(ready), who);
  const std::string_view session = head.header(KnownHeader::mcp_session_id);
  if (session.data() != nullptr && service_->sessions->enabled()) {
    message->arrived_in(service_->sessions->find(session, who));
  }
  return message;
}

void HttpEndpoint::post_message(const HttpRequest& request, const HttpExchangePtr& exchange,
                                Principal principal) {
  HttpCaller caller(request, exchange, *service_, std::move(principal));
  std::string& response = service_->response;
  response.clear();
  Outcome outcome;
  const RequestFields fields(request);
  const MirroredHeaders headers = mirrored_headers(request, fields);
  if (is_batch(request.body)) {
    Executor::Task nothing_waits;
    outcome = handle_batch(
        request.body, static_cast<LongMessage*>(request.prepared), &headers, *service_, caller,
        SharedReply::Form::array_or_messages,
        [service = service_](const Message& message, const MirroredHeaders* given, Caller& each,
                             std::string& out) {
          return service->dispatcher.dispatch(message, given, each, out);
        },
        nothing_waits, response);
  } else if (const std::expected<Message, MessageError> message = parse(request)) {
    if (message->kind == MessageKind::response) {
      if (const auto refused = HttpAdmission::refusal_of_revision(request)) {
        refuse(*exchange, *refused);
        return;
      }
    }
    if (request.prepared != nullptr &&
        static_cast<const LongMessage*>(request.prepared)->is_cancelled(*message)) {
      caller.cancel();
      return;
    }
    outcome = service_->dispatcher.dispatch(*message, &headers, caller, response);
    const Session* const session = caller.begun();
    if (session != nullptr && !session->ended() && outcome.kind == Outcome::Kind::answered) {
      exchange->reply(200, kJson, response, {{"Mcp-Session-Id", session->id()}});
      return;
    }
  } else {
    outcome = Dispatcher::reject(message.error(), response);
  }
  switch (outcome.kind) {
    case Outcome::Kind::answered:
      exchange->reply(outcome.http_status, kJson, response);
      return;
    case Outcome::Kind::accepted:
      exchange->reply(202, {}, {});
      return;
    case Outcome::Kind::pending:
      return;
  }
}

std::expected<Message, MessageError> HttpEndpoint::parse(const HttpRequest& request) {
  if (request.prepared == nullptr) return service_->parser.parse(request.body);
  return static_cast<const LongMessage*>(request.prepared)->message();
}

void HttpEndpoint::post_lines(const HttpRequest& request, const HttpExchangePtr& exchange,
                              const Principal& principal) {
  const bool takes_lines = accepts_by_name(request, kLinesType);
  const auto body = std::make_shared<MessageBody>(
      *service_, request, exchange, principal,
      takes_lines ? HttpChannel::Format::lines : HttpChannel::Format::events,
      options_.websocket.max_message);
  if (!body->open()) return;
  if (request.body_follows) {
    exchange->read_body(body);
  } else {
    body->on_body(request.body);
    body->on_body_end();
  }
}

void HttpEndpoint::tell_readiness(HttpExchange& exchange) {
  const std::string why = options_.not_ready ? options_.not_ready() : std::string();
  exchange.reply(why.empty() ? 200 : 503, kText, why.empty() ? "ready\n" : why + "\n");
}

void HttpEndpoint::answer_own(const Route& route, const HttpRequest& request,
                              HttpExchange& exchange, const Principal& principal) {
  TurnWatch& watch = service_->dispatcher.watch();
  try {
    const RequestHead head(request, service_->access->proxies());
    watch.begin({"route", route.path});
    const RouteReply reply = route.answer({head, request.body, principal});
    watch.end();
    if (const std::string wrong = fault_of(reply); !wrong.empty()) throw std::logic_error(wrong);
    std::vector<HeaderField> fields;
    for (const auto& [name, value] : reply.headers) fields.push_back({name, value});
    exchange.reply(reply.status, reply.content_type, reply.body,
                   std::span<const HeaderField>(fields));
  } catch (...) {
    watch.end();
    log_exception(logged_failures_, "a Route failed",
                  LogField{"path", std::string_view(route.path)});
    refuse(exchange, 500, kInternalError, "Internal error");
  }
}

void HttpEndpoint::preflight(const HttpRequest& request, HttpExchange& exchange) const {
  const std::string methods = admission_.methods_at(request.path);
  std::string all;
  std::string_view headers = request.list(KnownHeader::access_control_request_headers, all);
  if (headers.data() == nullptr) headers = "Content-Type";
  if (!request.has(KnownHeader::origin)) {
    exchange.reply(204, {}, {}, {{"Allow", methods}});
    return;
  }
  exchange.reply(204, {}, {},
                 {{"Access-Control-Allow-Methods", methods},
                  {"Access-Control-Allow-Headers", headers},
                  {"Access-Control-Max-Age", "600"}});
}

}  // namespace sluice

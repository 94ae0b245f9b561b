#include "cli/doctor/server/examine_server.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "cli/doctor/report/doctor_report.hpp"
#include "cli/doctor/server/connection_facts.hpp"
#include "cli/doctor/server/examination.hpp"
#include "cli/doctor/server/features.hpp"
#include "cli/doctor/server/http_requester.hpp"
#include "cli/doctor/server/reachability.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/remote/remote_server.hpp"
#include "cli/remote/server_place.hpp"
#include "cli/remote/stop_on_interrupt.hpp"
#include "cli/targets/named_values.hpp"
#include "cli/terminal/terminal.hpp"
#include "client/api/open_link.hpp"
#include "core/text/secrets.hpp"
#include "core/text/shell_word.hpp"
#include "core/text/text.hpp"
#include "json/members.hpp"
#include "net/http/status_codes.hpp"
#include "net/loop/unix_socket.hpp"

namespace sluice {
namespace {

constexpr std::string_view kLifecycleClause = "2025-11-25, Lifecycle, Initialization";
constexpr std::string_view kAuthorizationClause =
    "2026-07-28, Authorization, Authorization Flow Steps";

/// One request at least gets this much time.
constexpr Duration kLeastPatience = std::chrono::seconds(1);

/// A server to which HTTP requests are sent.
struct HttpServer {
  Url url;
  NamedValues headers;
  Dial dial = {};
  std::shared_ptr<const ProxySettings> proxies = {};  // null: none
};

class ServerDoctor {
 public:
  ServerDoctor(const Target& target, const ServerExaminationOptions& options)
      : target_(&target),
        options_(&options),
        deadline_(std::chrono::steady_clock::now() + options.timeout) {}

  Result<ServerExamination> examine() {
    if (const auto* url = std::get_if<UrlTarget>(&target_->place)) return examine_url(*url);
    const auto* socket = std::get_if<UnixTarget>(&target_->place);
    if (socket != nullptr && !socket->http_target.empty()) return examine_http_socket(*socket);
    examine_by_client(*target_);
    return finish();
  }

 private:
  Result<ServerExamination> examine_url(const UrlTarget& target) {
    auto tls = TlsContext::client();
    if (!tls) return sluice::fail(kExitUsage, tls.error().message);
    const auto proxies = environment_proxies();
    const auto proxy = proxies->proxy_for(target.url);
    if (!proxy) return sluice::fail(kExitUsage, proxy.error().message);
    const bool is_tls = target.url.is_tls();
    const Result<ConnectionFacts> facts =
        look_at_connection(target.url, *proxy, is_tls ? tls->get() : nullptr, deadline_);
    if (!examine_reachability(target.url, *proxy, facts, out_.checks)) {
      // A certificate that clients refuse is a mistake of a server that is there.
      if (!facts || !facts->is_reachable() || !facts->tunnel_problem.empty() || facts->is_silent)
        out_.exit_code = kExitUnreachable;
      return finish();
    }
    if (target.url.is_websocket()) {
      examine_by_client(*target_);
      return finish();
    }
    return examine_http({.url = target.url, .headers = target.headers, .proxies = proxies},
                        *std::move(tls), facts->is_private);
  }

  Result<ServerExamination> examine_http_socket(const UnixTarget& target) {
    // The host only appears in the Host field.
    auto url = parse_url("http://localhost" + target.http_target);
    if (!url) return sluice::fail(kExitUsage, url.error().message);
    return examine_http(
        {.url = *std::move(url),
         .headers = target.headers,
         .dial = [path = target.path](const Url&) { return connect_unix_socket(path); }},
        nullptr, true);
  }

  Result<ServerExamination> examine_http(HttpServer server, std::shared_ptr<TlsContext> tls,
                                         bool is_private) {
    auto more = split_named_values(options_->headers, ':', "--header \"Name: value\"");
    if (!more) return std::unexpected(more.error());
    auto headers = request_headers(std::move(server.headers), *std::move(more));
    if (!headers) return std::unexpected(std::move(headers.error()));
    server.headers = *std::move(headers);
    LinkPlace place;
    place.url = server.url.to_string();
    place.headers = server.headers;
    const auto secrets = std::make_shared<KnownSecrets>(secrets_of(place));
    mask_in_complaints(secrets);
    interrupt_.emplace();
    const bool has_credential = std::ranges::any_of(
        server.headers, [](const auto& field) { return to_lower(field.first) == "authorization"; });
    HttpRequester requester({.server = server.url,
                             .dial = server.dial,
                             .proxies = server.proxies,
                             .tls = std::move(tls),
                             .headers = server.headers,
                             .deadline = deadline_,
                             .max_requests = ServerExaminationOptions::kMaxRequests,
                             .uses_logins = !has_credential && !server.dial,
                             .secrets = secrets,
                             .stop = interrupt_->token()});
    Examination examination(requester, server.url, is_private);
    examination.is_socket = server.dial != nullptr;
    examine_by(examination);
    if (examination.refusal() && !examination.gone()) tell_of_login(examination);
    examination.end_sessions();
    // The client may have found it out too.
    if (examination.gone()) gone_ = examination.gone();
    return finish();
  }

  void examine_by(Examination& examination) {
    if (!may_go_on(examination)) return;
    probe_eras(examination);
    if (examination.limit())
      return leave_out("revisions", era_checks().front().clause, examination);
    run(era_checks(), examination);
    const LegacyEra* const era = examination.legacy_era();
    if (!examination.is_modern && era == nullptr) {
      if (examination.old_stream && examination.old_stream->is_event_stream()) {
        examine_by_client(*target_);
      } else if (forbidding_reply(examination) != nullptr) {
        needs_login_ = true;
      }
      return;
    }
    run(modern_http_checks(), examination);
    run(legacy_http_checks(), examination);
    run(streaming_checks(), examination);
    examine_features_over_http(examination);
    // A server may look for the session first, so it must not be over.
    if (examination.refusal() && !examination.authorization && !examination.gone()) {
      examine_authorization(examination, *examination.refusal());
    }
    run(session_checks(), examination);
  }

  /// Sends the first requests. False: there is no reply, or not without an authorization.
  bool may_go_on(Examination& examination) {
    Result<Reply> open = first_reply(examination, true);
    if (!open) {
      out_.checks.push_back(
          to_check("reply", "RFC 9110, section 3.3", Verdict::unanswered(open.error())));
      if (open.error().message != kLimitsRequests) out_.exit_code = kExitUnreachable;
      return false;
    }
    out_.checks.push_back(to_check("reply", "RFC 9110, section 3.3",
                                   Verdict::ok("HTTP " + std::to_string(open->status) + " after " +
                                               in_milliseconds(open->head_after))));
    if (!is_refusal(*open)) return true;
    examine_authorization(examination, {examination.modern("server/discover"), *std::move(open)});
    if (examination.gone()) return false;
    if (first_reply(examination, false)) return true;
    out_.exit_code = kExitAuthorization;
    if (examination.gone()) {
      leave_out("login", kAuthorizationClause, examination);
    } else if (!examination.refusal()) {
      note_login(examination.server());
    }
    return false;
  }

  void examine_authorization(Examination& examination, RefusedAsk refusal) {
    gather_authorization(examination, std::move(refusal));
    if (examination.gone()) return leave_out("authorization", kAuthorizationClause, examination);
    run(authorization_checks(), examination);
  }

  /// Some requests were refused for want of an authorization.
  void tell_of_login(Examination& examination) {
    if (!examination.authorization) examine_authorization(examination, *examination.refusal());
    note_login(examination.server());
  }

  void note_login(const Url& server) {
    out_.checks.push_back(
        to_check("login", std::string(kAuthorizationClause),
                 Verdict::note("all else is examined only with an authorization",
                               "sluice login " + shell_word(masked_url(server.to_string())) +
                                   ", or give --header \"Authorization: Bearer TOKEN\"")));
    needs_login_ = true;
  }

  /// What follows cannot be examined.
  void leave_out(std::string_view subject, std::string_view clause,
                 const Examination& examination) {
    out_.checks.push_back(
        to_check(subject, std::string(clause), Verdict::note(examination.limit()->message)));
  }

  void examine_features_over_http(Examination& examination) {
    const LegacyEra* const era = examination.legacy_era();
    const bool is_modern = examination.is_modern;
    Features features{.revision = is_modern ? &newest_revision(Era::modern) : era->asked,
                      .about = is_modern ? examination.discovered : era->result,
                      .is_http = true};
    features.request = [&](std::string_view method, json::object params) -> Result<json::object> {
      Ask ask = is_modern ? examination.modern(method, std::move(params))
                          : examination.legacy(*era, method, std::move(params));
      if (is_list(method)) ask.patience = patience_for_list();
      const TimePoint began = std::chrono::steady_clock::now();
      const Result<Reply> reply = examination.ask(ask);
      if (!reply) return std::unexpected(reply.error());
      if (is_list(method)) note_list(began);
      const auto answer = reply->answer();
      if (const json::object* const result = result_in(answer)) return *result;
      const int code = error_code_in(answer);
      return sluice::fail(code == 0 ? reply->status : code, seen(*reply));
    };
    examine_features(features, out_.checks);
  }

  /// Examines what can be seen over any transport.
  void examine_by_client(const Target& target) {
    if (!interrupt_) interrupt_.emplace();
    const auto began = std::chrono::steady_clock::now();
    Result<Client> server = connect(target, {});
    const auto* const url = std::get_if<UrlTarget>(&target.place);
    if (!server && server.error().code == kExitAuthorization && url != nullptr) {
      return note_login(url->url);
    }
    if (!server) {
      out_.checks.push_back(
          to_check("initialize", std::string(kLifecycleClause),
                   Verdict::fail(server.error().message,
                                 "Check that it is an MCP server, and that it starts")));
      out_.exit_code = server.error().code;
      return;
    }
    const Client& client = *server;
    const Duration took = std::chrono::steady_clock::now() - began;
    out_.checks.push_back(to_check(
        "revisions", "2026-07-28, Versioning, Protocol Version Negotiation",
        Verdict::ok(std::string(client.revision()) + ", within " + in_milliseconds(took))));
    Features features{.revision = find_revision(client.revision()),
                      .about = client.about(),
                      .request = request_by(*server)};
    examine_other_era(target, *features.revision);
    examine_features(features, out_.checks);
    if (is_refused_ && url != nullptr) note_login(url->url);
  }

  Features::Request request_by(Client& server) {
    return [this, &server](std::string_view method, json::object params) -> Result<json::object> {
      if (gone_) return sluice::fail(kLimitReached, std::string(kServerHasGone));
      if (limits_requests_) return sluice::fail(kLimitReached, std::string(kLimitsRequests));
      CallOptions call;
      const Duration patience = is_list(method) ? patience_for_list() : Ask::kPatience;
      call.timeout = std::min(left(), patience);
      if (call.timeout <= kLeastPatience) return time_is_over();
      const bool is_short = call.timeout < patience;
      const TimePoint began = std::chrono::steady_clock::now();
      try {
        json::object result = server.request(method, std::move(params), std::move(call)).result();
        if (is_list(method)) note_list(began);
        return result;
      } catch (const Error& error) {
        if (is_no_answer(error))
          gone_ = why_gone(server, std::max<Duration>(kLastPatience, 2 * slowest_list_));
        if (gone_) return sluice::fail(kLimitReached, std::string(kServerHasGone));
        if (error.code == kTimedOut && is_short) return time_is_over();
        // Only over HTTP these are no codes of the server's own.
        if (!std::holds_alternative<UrlTarget>(target_->place)) return std::unexpected(error);
        if (error.code == kTooManyRequests) {
          limits_requests_ = true;
          return sluice::fail(kLimitReached, std::string(kLimitsRequests));
        }
        if (error.code == kUnauthorized) {
          is_refused_ = true;
          return sluice::fail(kLimitReached, std::string(kBehindLogin));
        }
        return std::unexpected(error);
      }
    };
  }

  static std::unexpected<Error> time_is_over() {
    return sluice::fail(kLimitReached, std::string(kTimeIsOver));
  }

  static bool is_no_answer(const Error& error) {
    return error.code == kBadGateway || error.code == kTimedOut;
  }

  /// Why the server does not answer; nothing: it does.
  static std::optional<Error> why_gone(Client& server, Duration patience) {
    const bool is_legacy = find_revision(server.revision())->era == Era::legacy;
    // The modern era has no `ping`, and some servers are silent to it alone.
    const std::string_view list = is_legacy ? declared_list(server.about()) : "";
    std::optional<Error> why;
    for (const std::string_view method :
         {is_legacy ? std::string_view("ping") : "server/discover", list}) {
      if (method.empty()) continue;
      CallOptions call;
      call.timeout = patience;
      try {
        server.request(method, {}, std::move(call)).result();
        return {};
      } catch (const Error& error) {
        if (!is_no_answer(error)) return {};
        why = error;
      }
    }
    return why;
  }

  /// Whether the server may have to start others before it answers.
  static bool is_list(std::string_view method) { return method.ends_with("/list"); }
  [[nodiscard]] Duration patience_for_list() const {
    return std::max<Duration>({Ask::kPatience, left() / 3, 2 * slowest_list_});
  }
  /// A list has been answered that was asked for at `began`.
  void note_list(TimePoint began) {
    slowest_list_ = std::max<Duration>(slowest_list_, std::chrono::steady_clock::now() - began);
  }

  /// Whether a modern server has the legacy era as well, for old clients.
  void examine_other_era(const Target& target, const Revision& spoken) {
    if (spoken.era == Era::legacy) return;
    const std::string_view legacy = newest_revision(Era::legacy).name;
    const Result<Client> server = connect(target, std::string(legacy));
    out_.checks.push_back(
        to_check("legacy era", std::string(kLifecycleClause),
                 server ? Verdict::ok("also " + std::string(server->revision()))
                        : Verdict::note("none: clients before 2026-07-28 cannot use the server")));
  }

  Result<Client> connect(const Target& target, std::string revision) {
    RemoteOptions options;
    options.headers = options_->headers;
    options.revision = std::move(revision);
    options.timeout = to_seconds(std::max(left(), kLeastPatience));
    ClientOptions client{.stop = interrupt_->token()};
    client.probe_timeout = std::min<std::chrono::nanoseconds>(client.probe_timeout, left() / 2);
    return connect_to(target, options, std::move(client));
  }

  [[nodiscard]] Duration left() const { return deadline_ - std::chrono::steady_clock::now(); }

  void run(std::span<const ServerCheck> checks, Examination& examination) {
    run_checks(checks, examination, out_.checks);
  }

  Result<ServerExamination> finish() {
    if (interrupt_ && interrupt_->token().stop_requested()) {
      return sluice::fail(kExitInterrupted, "");
    }
    gather_limited();
    if (gone_) {
      const bool is_silent = gone_->code == kGatewayTimeout || gone_->code == kTimedOut;
      out_.checks.push_back(to_check(
          "server", "",
          Verdict::fail(
              (is_silent ? "it does not answer any more: " : "it has gone meanwhile: ") +
                  gone_->message,
              "Check that it still runs. If it goes each time, a request about what is not "
              "examined ends it: its log may say which")));
      out_.exit_code = kExitUnreachable;
    }
    if (out_.exit_code == kExitOk && any_failed(out_.checks)) out_.exit_code = kExitFailure;
    if (out_.exit_code == kExitOk && needs_login_) out_.exit_code = kExitAuthorization;
    if (needs_login_) {
      out_.all_is_well = "No violation found, as far as can be seen without a login";
    } else if (is_cut()) {
      out_.all_is_well = "No violation found in what could be examined";
    }
    return std::move(out_);
  }

  /// Whether something is not examined.
  [[nodiscard]] bool is_cut() const {
    return std::ranges::any_of(out_.checks, [](const Check& check) {
      return check.status == Check::Status::note && check.finding.contains(kNotExamined);
    });
  }

  /// Makes one note of all that the server had no more requests for.
  void gather_limited() {
    std::string subjects;
    std::erase_if(out_.checks, [&](const Check& check) {
      // What a server has said stands in quotes.
      const bool is_limited =
          check.status == Check::Status::note && check.finding.ends_with(kLimitsRequests);
      if (is_limited) subjects.append(subjects.empty() ? "" : ", ").append(check.subject);
      return is_limited;
    });
    if (subjects.empty()) return;
    out_.checks.push_back(to_check("requests", "RFC 6585, section 4",
                                   Verdict::note(std::string(kLimitsRequests) + ": " + subjects,
                                                 "Let more requests through for a while")));
  }

  const Target* target_;
  const ServerExaminationOptions* options_;
  const TimePoint deadline_;
  /// From the time on when there may be something to end.
  std::optional<StopOnInterrupt> interrupt_;
  std::optional<Error> gone_;  // why the server is not there any more
  bool needs_login_ = false;   // something is not examined without it
  bool is_refused_ = false;    // the same, as a request has shown
  bool limits_requests_ = false;
  Duration slowest_list_{};
  ServerExamination out_;
};

}  // namespace

Result<ServerExamination> examine_server(const Target& target,
                                         const ServerExaminationOptions& options) {
  return ServerDoctor(target, options).examine();
}

}  // namespace sluice

// What HTTP servers must do with requests of the legacy era, and what they may do.

#include <array>
#include <utility>

#include "cli/doctor/server/examination.hpp"
#include "cli/doctor/server/http_rules.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

std::optional<Verdict> check_notification(Examination& examination) {
  const LegacyEra* const era = examination.legacy_era();
  if (era == nullptr) return {};
  const Result<Reply> reply =
      examination.ask(examination.notification(*era, "notifications/initialized"));
  if (!reply) return Verdict::unanswered(reply.error());
  if (reply->status != 202) {
    return Verdict::fail(seen(*reply) + " to notifications/initialized",
                         "Answer notifications with 202 Accepted");
  }
  if (!reply->body.empty()) {
    return Verdict::fail("HTTP 202 with a body", "Answer notifications without a body");
  }
  return Verdict::ok("HTTP 202");
}

std::optional<Verdict> check_ping(Examination& examination) {
  const LegacyEra* const era = examination.legacy_era();
  if (era == nullptr) return {};
  const Result<Reply> reply = examination.ask(examination.legacy(*era, "ping"));
  if (!reply) return Verdict::unanswered(reply.error());
  if (result_in(reply->answer()) == nullptr) {
    return Verdict::fail(seen(*reply) + " to ping", "Answer ping with an empty result");
  }
  return Verdict::ok("answered within " + in_milliseconds(reply->head_after));
}

std::optional<Verdict> check_legacy_answer(Examination& examination) {
  const LegacyEra* const era = examination.legacy_era();
  if (era == nullptr) return {};
  const Result<Reply> reply = examination.ask(examination.legacy(*era, "ping"));
  if (!reply) return Verdict::unanswered(reply.error());
  return judge_answer(examination, *reply);
}

std::optional<Verdict> check_legacy_origin(Examination& examination) {
  const LegacyEra* const era = examination.legacy_era();
  if (era == nullptr) return {};
  return judge_origin(examination, examination.legacy(*era, "ping"));
}

std::optional<Verdict> check_legacy_version(Examination& examination) {
  const LegacyEra* const era = examination.legacy_era();
  // The field is new in 2025-06-18.
  if (era == nullptr || era->spoken < "2025-06-18") return {};
  Ask ask = examination.legacy(*era, "ping");
  ask.may_be_refused = true;
  set_field(ask, "MCP-Protocol-Version", "1900-01-01");
  const Result<Reply> reply = examination.ask(ask);
  if (!reply) return Verdict::unanswered(reply.error());
  const std::string found = seen(*reply) + " to MCP-Protocol-Version: 1900-01-01";
  if (reply->status == 400) return Verdict::ok(found);
  return Verdict::fail(found, "Answer 400 Bad Request to a revision that is not supported");
}

std::optional<Verdict> check_get_accepted(Examination& examination) {
  const LegacyEra* const era = examination.legacy_era();
  if (era == nullptr) return {};
  Ask ask = examination.notification(*era, "");
  ask.method = "GET";
  ask.body.clear();
  remove_field(ask, "Content-Type");
  set_field(ask, "Accept", "application/json");
  ask.until = Until::first_bytes;
  ask.patience = std::chrono::seconds(2);
  const Result<Reply> reply = examination.ask(ask);
  if (!reply) return Verdict::note("a GET that accepts only JSON: " + reply.error().message);
  const std::string found = seen(*reply) + " to a GET that accepts only JSON";
  if (reply->status / 100 == 4) return Verdict::ok(found);
  return Verdict::note(found, "Answer 406 or 405 to a GET without Accept: text/event-stream");
}

std::optional<Verdict> check_legacy_unknown_method(Examination& examination) {
  const LegacyEra* const era = examination.legacy_era();
  if (era == nullptr) return {};
  const Result<Reply> reply = examination.ask(examination.legacy(*era, "sluice-doctor/unknown"));
  if (!reply) return Verdict::unanswered(reply.error());
  const std::string found = seen(*reply) + " to an unknown method";
  if (error_code_in(reply->answer()) == kMethodNotFound) return Verdict::ok(found);
  return Verdict::fail(found, "Answer with a JSON-RPC error -32601");
}

std::optional<Verdict> check_broken_json(Examination& examination) {
  const LegacyEra* const era = examination.legacy_era();
  if (era == nullptr) return {};
  Ask ask = examination.legacy(*era, "ping");
  ask.may_be_refused = true;
  ask.body = R"({"jsonrpc":"2.0","id":1,"method":)";
  const Result<Reply> reply = examination.ask(ask);
  if (!reply) return Verdict::unanswered(reply.error());
  const std::string found = seen(*reply) + " to a body that is not JSON";
  if (reply->status / 100 == 2 && error_code_in(reply->answer()) == 0) {
    return Verdict::fail(found, "Refuse it: HTTP 400 with a JSON-RPC error -32700");
  }
  if (reply->status >= 500) {
    return Verdict::fail(found,
                         "Refuse it as the client's mistake: HTTP 400 with a JSON-RPC error "
                         "-32700");
  }
  if (error_code_in(reply->answer()) == kParseError) return Verdict::ok(found);
  return Verdict::note(found, "Answer with a JSON-RPC error -32700, so that clients can tell");
}

std::optional<Verdict> check_content_type(Examination& examination) {
  const LegacyEra* const era = examination.legacy_era();
  if (era == nullptr) return {};
  Ask ask = examination.legacy(*era, "ping");
  ask.may_be_refused = true;
  set_field(ask, "Content-Type", "text/plain");
  const Result<Reply> reply = examination.ask(ask);
  if (!reply) return Verdict::unanswered(reply.error());
  const std::string found = seen(*reply) + " to a POST of text/plain";
  if (reply->status / 100 == 4) return Verdict::ok(found);
  // Only the check of Origin stands between such a request and the server.
  return Verdict::note(found,
                       "Answer 415 Unsupported Media Type: browsers send text/plain to other "
                       "sites without asking them first");
}

constexpr std::array kLegacyHttpChecks = {
    ServerCheck{"notifications", "2025-11-25, Transports, Sending Messages to the Server, item 4",
                check_notification},
    ServerCheck{"ping", "2025-11-25, Ping, Behavior Requirements", check_ping},
    ServerCheck{"legacy answer", "2025-11-25, Overview, Responses", check_legacy_answer},
    ServerCheck{"legacy origin", "2025-11-25, Transports, Security Warning, item 1",
                check_legacy_origin},
    ServerCheck{"legacy version", "2025-11-25, Transports, Protocol Version Header",
                check_legacy_version},
    ServerCheck{"legacy method", "JSON-RPC 2.0, section 5.1", check_legacy_unknown_method},
    ServerCheck{"broken JSON", "JSON-RPC 2.0, section 5.1", check_broken_json},
    ServerCheck{"content type", "RFC 9110, section 15.5.16", check_content_type},
    ServerCheck{"accept", "2025-11-25, Transports, Listening for Messages from the Server, item 2",
                check_get_accepted},
};

}  // namespace

std::span<const ServerCheck> legacy_http_checks() {
  return kLegacyHttpChecks;
}

}  // namespace sluice

// What HTTP servers must do with requests of 2026-07-28.

#include <algorithm>
#include <array>
#include <utility>

#include "cli/doctor/server/examination.hpp"
#include "cli/doctor/server/http_rules.hpp"
#include "json/members.hpp"
#include "protocol/error_codes.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

constexpr std::string_view kNoResource = "sluice-doctor:no-such-resource";

/// Asks what must be refused with this status and this error.
Verdict expect_refusal(Examination& examination, Ask ask, int status, int code,
                       const std::string& what, const std::string& fix) {
  ask.may_be_refused = true;
  const Result<Reply> reply = examination.ask(ask);
  if (!reply) return Verdict::unanswered(reply.error());
  const std::string found = seen(*reply) + " to " + what;
  if (reply->status == status && error_code_in(reply->answer()) == code) return Verdict::ok(found);
  return Verdict::fail(found, fix + ": HTTP " + std::to_string(status) + " with a JSON-RPC error " +
                                  std::to_string(code));
}

std::optional<Verdict> check_modern_origin(Examination& examination) {
  if (!examination.is_modern) return {};
  return judge_origin(examination, examination.modern("server/discover"));
}

std::optional<Verdict> check_unsupported_revision(Examination& examination) {
  if (!examination.is_modern) return {};
  Ask ask = examination.modern("server/discover");
  ask.may_be_refused = true;
  set_field(ask, "MCP-Protocol-Version", "1900-01-01");
  const std::size_t at = ask.body.find(newest_revision(Era::modern).name);
  ask.body.replace(at, newest_revision(Era::modern).name.size(), "1900-01-01");
  const Result<Reply> reply = examination.ask(ask);
  if (!reply) return Verdict::unanswered(reply.error());
  const auto answer = reply->answer();
  const std::string found = seen(*reply) + " to the revision 1900-01-01";
  if (reply->status != 400 || error_code_in(answer) != kUnsupportedProtocolVersion) {
    return Verdict::fail(found, "Refuse it: HTTP 400 with a JSON-RPC error -32022");
  }
  const json::object* const data = object_at(answer->at("error").get_object(), "data");
  const json::value* const supported = data == nullptr ? nullptr : data->if_contains("supported");
  if (supported == nullptr || !supported->is_array() || supported->get_array().empty()) {
    return Verdict::fail(found + ", without the revisions that are supported",
                         "List them in data.supported: clients choose among them");
  }
  return Verdict::ok(found);
}

std::optional<Verdict> check_method_header(Examination& examination) {
  if (!examination.is_modern) return {};
  Ask ask = examination.modern("server/discover");
  set_field(ask, "Mcp-Method", "tools/list");
  return expect_refusal(examination, std::move(ask), 400, kHeaderMismatch,
                        "an Mcp-Method that is not the body's method", "Compare both");
}

std::optional<Verdict> check_missing_header(Examination& examination) {
  if (!examination.is_modern) return {};
  Ask ask = examination.modern("server/discover");
  remove_field(ask, "Mcp-Method");
  return expect_refusal(examination, std::move(ask), 400, kHeaderMismatch,
                        "a request without Mcp-Method", "Refuse it");
}

std::optional<Verdict> check_version_header(Examination& examination) {
  if (!examination.is_modern) return {};
  Ask ask = examination.modern("server/discover");
  set_field(ask, "MCP-Protocol-Version", "2025-11-25");
  return expect_refusal(examination, std::move(ask), 400, kHeaderMismatch,
                        "an MCP-Protocol-Version that is not that of the body", "Compare both");
}

std::optional<Verdict> check_name_header(Examination& examination) {
  if (!examination.is_modern) return {};
  Ask ask = examination.modern("resources/read", {{"uri", kNoResource}});
  ask.may_be_refused = true;
  set_field(ask, "Mcp-Name", "sluice-doctor:another");
  const Result<Reply> reply = examination.ask(ask);
  if (!reply) return Verdict::unanswered(reply.error());
  const int code = error_code_in(reply->answer());
  // A server without resources does not know the method.
  if (code == kMethodNotFound) return {};
  const std::string found = seen(*reply) + " to an Mcp-Name that is not the body's uri";
  if (reply->status == 400 && code == kHeaderMismatch) return Verdict::ok(found);
  return Verdict::fail(found, "Compare both: HTTP 400 with a JSON-RPC error -32020");
}

std::optional<Verdict> check_modern_unknown_method(Examination& examination) {
  if (!examination.is_modern) return {};
  return expect_refusal(examination, examination.modern("sluice-doctor/unknown"), 404,
                        kMethodNotFound, "an unknown method", "Say that it does not exist");
}

std::optional<Verdict> check_missing_meta(Examination& examination) {
  if (!examination.is_modern) return {};
  Ask ask = examination.modern("server/discover");
  const std::string_view member = ",\"io.modelcontextprotocol/clientCapabilities\":{}";
  const std::size_t at = ask.body.find(member);
  ask.body.erase(at, member.size());
  return expect_refusal(examination, std::move(ask), 400, kInvalidParams,
                        "a request without clientCapabilities in _meta", "Refuse it");
}

std::optional<Verdict> check_modern_id(Examination& examination) {
  if (!examination.is_modern) return {};
  const Result<Reply> reply = examination.ask(examination.modern("server/discover"));
  if (!reply) return Verdict::unanswered(reply.error());
  return judge_answer(examination, *reply);
}

std::optional<Verdict> check_minted_session(Examination& examination) {
  if (!examination.is_modern) return {};
  Ask ask = examination.modern("server/discover");
  ask.headers.emplace_back("Mcp-Session-Id", "sluice-doctor");
  const Result<Reply> reply = examination.ask(ask);
  if (!reply) return Verdict::unanswered(reply.error());
  if (result_in(reply->answer()) == nullptr) {
    return Verdict::warn(seen(*reply) + " to a request with an Mcp-Session-Id",
                         "Ignore the field in this era");
  }
  if (!reply->header("Mcp-Session-Id").empty() ||
      !examination.discover->header("Mcp-Session-Id").empty()) {
    return Verdict::warn("replies have an Mcp-Session-Id", "Leave it out in this era");
  }
  return Verdict::ok("ignored");
}

std::optional<Verdict> check_modern_get(Examination& examination) {
  if (!examination.is_modern || examination.legacy_era() != nullptr) return {};
  const Result<Reply> reply = examination.ask({.method = "GET",
                                               .headers = {{"Accept", "text/event-stream"}},
                                               .until = Until::first_bytes,
                                               .patience = std::chrono::seconds(2)});
  if (!reply) return Verdict::unanswered(reply.error());
  if (reply->status == 405) return Verdict::ok("HTTP 405");
  // The older transport may be at the same place.
  if (reply->is_event_stream()) return Verdict::note("GET opens an event stream");
  return Verdict::warn(seen(*reply) + " to GET", "Answer 405 Method Not Allowed");
}

std::optional<Verdict> check_unknown_resource(Examination& examination) {
  const json::object* const capabilities = object_at(examination.discovered, "capabilities");
  if (capabilities == nullptr || !capabilities->contains("resources")) return {};
  const Result<Reply> reply =
      examination.ask(examination.modern("resources/read", {{"uri", kNoResource}}));
  if (!reply) return Verdict::unanswered(reply.error());
  const std::string found = seen(*reply) + " to a resource that does not exist";
  const int code = error_code_in(reply->answer());
  if (code == kInvalidParams) return Verdict::ok(found);
  return Verdict::fail(found, code == kResourceNotFound
                                  ? "Answer with error -32602: -32002 is that of older revisions"
                                  : "Answer with a JSON-RPC error -32602");
}

constexpr std::array kModernHttpChecks = {
    ServerCheck{"origin", "2026-07-28, Streamable HTTP, Security & Endpoint, item 1",
                check_modern_origin},
    ServerCheck{"answer", "2026-07-28, Overview, Responses", check_modern_id},
    ServerCheck{"version refused", "2026-07-28, Streamable HTTP, Protocol Version Header",
                check_unsupported_revision},
    ServerCheck{"version header", "2026-07-28, Streamable HTTP, Protocol Version Header",
                check_version_header},
    ServerCheck{"Mcp-Method", "2026-07-28, Streamable HTTP, Server Validation",
                check_method_header},
    ServerCheck{"no Mcp-Method", "2026-07-28, Streamable HTTP, Server Validation",
                check_missing_header},
    ServerCheck{"Mcp-Name", "2026-07-28, Streamable HTTP, Server Validation", check_name_header},
    ServerCheck{"_meta", "2026-07-28, Overview, _meta", check_missing_meta},
    ServerCheck{"unknown method", "2026-07-28, Streamable HTTP, Protocol Version Header",
                check_modern_unknown_method},
    ServerCheck{"unknown resource", "2026-07-28, Resources, Error Handling",
                check_unknown_resource},
    ServerCheck{"no sessions", "2026-07-28, Streamable HTTP, Earlier Streamable HTTP Revisions",
                check_minted_session},
    ServerCheck{"GET", "2026-07-28, Streamable HTTP, Earlier Streamable HTTP Revisions",
                check_modern_get},
};

}  // namespace

std::span<const ServerCheck> modern_http_checks() {
  return kModernHttpChecks;
}

}  // namespace sluice

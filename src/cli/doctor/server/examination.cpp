#include "cli/doctor/server/examination.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/version.hpp"
#include "json/members.hpp"
#include "net/http/status_codes.hpp"
#include "protocol/mirrored_headers.hpp"
#include "protocol/negotiation.hpp"

namespace sluice {
namespace {

/// Whether it is what a gateway says if there is no server behind it.
bool is_of_gateway(const Reply& reply) {
  const bool has_status = reply.status == kBadGateway || reply.status == kServiceUnavailable ||
                          reply.status == kGatewayTimeout;
  if (!has_status) return false;
  const auto answer = reply.answer();
  // Gateways have members named `error` too.
  return !answer || text_at(*answer, "jsonrpc") != "2.0";
}

HttpHeaderList message_headers(std::string_view revision) {
  return {{"Content-Type", "application/json"},
          {"Accept", "application/json, text/event-stream"},
          {std::string(kVersionField), std::string(revision)}};
}

json::object client_of_doctor() {
  return {{"name", "sluice-doctor"}, {"version", kVersion}};
}

HttpHeaderList headers_of_session(const LegacyEra& era) {
  HttpHeaderList headers = message_headers(era.spoken);
  if (!era.session.empty()) headers.emplace_back("Mcp-Session-Id", era.session);
  return headers;
}

}  // namespace

Result<Reply> Examination::ask(const Ask& ask) {
  if (gone_) return std::unexpected(*limit_);
  Result<Reply> reply = exchange(ask);
  // A kept connection may have been about to end. Whoever was silent may be so again, for long.
  if (!reply && reply.error().code != kLimitReached && reply.error().code != kGatewayTimeout) {
    reply = exchange(ask);
  }
  if (reply) {
    has_replied_ = true;
  } else if (reply.error().code == kLimitReached) {
    limit_ = reply.error();
  } else if (has_replied_) {
    return std::unexpected(look_again(std::move(reply.error())));
  }
  return reply;
}

Result<Reply> Examination::exchange(const Ask& ask) {
  Result<Reply> reply = requester_->ask(ask);
  if (reply && reply->cut_off) {
    end_session_begun_by(ask, *reply);
    return std::unexpected(*std::move(reply->cut_off));
  }
  if (!reply || !is_of_gateway(*reply)) return reply;
  return fail(reply->status, seen(*reply) + ", without a message of MCP");
}

void Examination::end_session_begun_by(const Ask& ask, const Reply& reply) {
  const std::string_view session = reply.header("Mcp-Session-Id");
  const bool is_within_one = !field_in(ask.headers, "Mcp-Session-Id").empty();
  if (session.empty() || is_within_one) return;
  (void)requester_->ask(farewell(session, field_in(ask.headers, kVersionField)));
}

Ask Examination::something_simple() {
  if (answers_discover) return modern("server/discover");
  if (const LegacyEra* const era = legacy_era()) return legacy(*era, "ping");
  return initialize(newest_revision(Era::legacy).name);
}

Error Examination::look_again(Error why) {
  Ask simple = something_simple();
  simple.at_least = kLastPatience;
  const Result<Reply> again = exchange(simple);
  if (again) end_session_begun_by(simple, *again);
  if (again && why.code == kGatewayTimeout && !requester_->has_time()) {
    // It might have replied later.
    limit_ = Error(kLimitReached, std::string(kTimeIsOver));
    return *limit_;
  }
  if (again) return why;
  limit_ = again.error();
  if (limit_->code != kLimitReached) {
    gone_ = std::move(*limit_);
    limit_ = Error(kLimitReached, std::string(kServerHasGone));
  }
  return *limit_;
}

std::string Examination::next_id() {
  ++last_id_;
  return last_id();
}

Ask Examination::modern(std::string_view method, json::object params) {
  const std::string_view revision = newest_revision(Era::modern).name;
  HttpHeaderList headers = message_headers(revision);
  headers.emplace_back("Mcp-Method", method);
  if (const auto mirrored = mirrored_parameter(method)) {
    headers.emplace_back("Mcp-Name", encode_header_value(text_at(params, *mirrored)));
  }
  params["_meta"] = {{"io.modelcontextprotocol/protocolVersion", revision},
                     {kClientInfoKey, client_of_doctor()},
                     {"io.modelcontextprotocol/clientCapabilities", json::object()}};
  return {.headers = std::move(headers),
          .body = to_json(json::object{{"jsonrpc", "2.0"},
                                       {"id", next_id()},
                                       {"method", method},
                                       {"params", std::move(params)}})};
}

Ask Examination::legacy(const LegacyEra& era, std::string_view method, json::object params) {
  return {.headers = headers_of_session(era),
          .body = to_json(json::object{{"jsonrpc", "2.0"},
                                       {"id", next_id()},
                                       {"method", method},
                                       {"params", std::move(params)}})};
}

Ask Examination::notification(const LegacyEra& era, std::string_view method) const {
  return {.headers = headers_of_session(era),
          .body = to_json(json::object{{"jsonrpc", "2.0"}, {"method", method}})};
}

Ask Examination::farewell(std::string_view session, std::string_view revision) {
  return {.method = "DELETE",
          .headers = {{"Mcp-Session-Id", std::string(session)},
                      {std::string(kVersionField), std::string(revision)}}};
}

Ask Examination::initialize(std::string_view revision) {
  return {.headers = message_headers(revision),
          .body = to_json(json::object{{"jsonrpc", "2.0"},
                                       {"id", next_id()},
                                       {"method", "initialize"},
                                       {"params",
                                        {{"protocolVersion", revision},
                                         {"capabilities", json::object()},
                                         {"clientInfo", client_of_doctor()}}}})};
}

const LegacyEra* Examination::legacy_era() const {
  const auto found = std::ranges::find_if(legacy_eras, &LegacyEra::is_spoken);
  return found == legacy_eras.end() ? nullptr : &*found;
}

void run_checks(std::span<const ServerCheck> checks, Examination& examination, Checks& out) {
  for (const ServerCheck& check : checks) {
    if (const std::optional<Verdict> verdict = check.examine(examination)) {
      out.push_back(to_check(check.subject, std::string(check.clause), *verdict));
    }
  }
}

std::string seen(const Reply& reply) {
  std::string out = "HTTP " + std::to_string(reply.status);
  if (const int code = error_code_in(reply.answer()); code != 0) {
    out.append(", error ").append(std::to_string(code));
  }
  return out;
}

std::string in_milliseconds(Duration duration) {
  const auto count = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  return std::to_string(count) + " ms";
}

bool is_refusal(const Reply& reply) {
  return reply.status == 401 || (reply.status == 403 && !reply.header("WWW-Authenticate").empty());
}

}  // namespace sluice

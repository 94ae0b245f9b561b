#include "cli/doctor/server/examination.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "cli/doctor/server/features.hpp"
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
  return has_status && !is_of_mcp(reply);
}

bool is_limit_of_requests(const Result<Reply>& reply) {
  return reply && reply->status == kTooManyRequests;
}

/// The revision of the session that `initialize` has begun.
std::string spoken_in(const Reply& reply, std::string_view asked) {
  const auto answer = reply.answer();
  const json::object* const result = result_in(answer);
  const std::string_view spoken = result == nullptr ? "" : text_at(*result, "protocolVersion");
  return std::string(spoken.empty() ? asked : spoken);
}

/// The request for the rest of a stream whose last event is `event`.
Ask resumption_of(const Ask& ask, const ReplyEvent& event) {
  Ask rest = ask;
  rest.method = "GET";
  rest.body.clear();
  rest.revision.clear();
  std::erase_if(rest.headers, [](const auto& field) {
    return field.first == "Content-Type" || field.first == "Accept";
  });
  rest.headers.emplace_back("Accept", "text/event-stream");
  rest.headers.emplace_back("Last-Event-ID", event.id);
  return rest;
}

HttpHeaderList first_headers() {
  return {{"Content-Type", "application/json"}, {"Accept", "application/json, text/event-stream"}};
}

HttpHeaderList message_headers(std::string_view revision) {
  HttpHeaderList headers = first_headers();
  headers.emplace_back(kVersionField, revision);
  return headers;
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
  if (gone_ || has_limited_) return std::unexpected(*limit_);
  // Others may take somewhat longer than the slowest so far. One is needed.
  const bool is_other = !ask.revision.empty() && legacy_era() != nullptr;
  if (is_other && slowest_start_ * 3 / 2 > patience_to_start()) {
    return fail(kLimitReached, "not examined: there is not enough time for another initialize");
  }
  Result<Reply> reply = exchange(ask);
  // A kept connection may have been about to end. Whoever was silent may be so again, for long.
  if (!reply && reply.error().code != kLimitReached && reply.error().code != kGatewayTimeout) {
    reply = exchange(ask);
  }
  if (reply) {
    has_replied_ = true;
    const bool is_proper = !ask.is_anonymous && !ask.may_be_refused && !ask.asked.empty();
    if (is_proper && result_in(reply->answer()) != nullptr) answered_.insert(ask.asked);
    const bool is_due = ask.may_be_refused && answered_.contains(ask.asked);
    if (is_refusal(*reply) && !ask.is_anonymous && !is_due) {
      if (!refusal_) refusal_ = {ask, *std::move(reply)};
      return fail(kLimitReached, std::string(kBehindLogin));
    }
  } else if (reply.error().code == kLimitReached) {
    limit_ = reply.error();
  } else if (has_replied_) {
    return std::unexpected(look_again(std::move(reply.error())));
  }
  return reply;
}

Result<Reply> Examination::exchange_once(const Ask& ask) {
  Result<Reply> reply = requester_->ask(ask);
  if (!reply) return reply;
  if (ask.method == "DELETE") {
    if (!is_limit_of_requests(reply)) {
      open_.erase(std::string(field_in(ask.headers, "Mcp-Session-Id")));
    }
    return reply;
  }
  const std::string session(reply->header("Mcp-Session-Id"));
  if (!ask.revision.empty()) {
    slowest_start_ = std::max(slowest_start_, reply->head_after);
    if (!session.empty()) open_[session] = spoken_in(*reply, ask.revision);
  }
  const bool may_go_on = ask.until == Until::answer && reply->is_whole && reply->is_event_stream();
  if (!may_go_on || reply->events.empty() || reply->answer()) return reply;
  Ask rest = resumption_of(ask, reply->events.back());
  if (field_in(rest.headers, "Last-Event-ID").empty()) return reply;
  if (!ask.revision.empty() && !session.empty())
    rest.headers.emplace_back("Mcp-Session-Id", session);
  const Result<Reply> more = requester_->ask(rest);
  if (more) std::ranges::copy(more->events, std::back_inserter(reply->events));
  return reply;
}

Result<Reply> Examination::exchange(const Ask& ask) {
  Result<Reply> reply = exchange_once(ask);
  const auto limited = is_limit_of_requests(reply) ? reply->retry_after : std::nullopt;
  if (limited && *limited <= kLongestLimit && requester_->pause(*limited)) {
    reply = exchange_once(ask);
  }
  if (is_limit_of_requests(reply)) {
    has_limited_ = true;
    limit_ = Error(kLimitReached, std::string(kLimitsRequests));
    return std::unexpected(*limit_);
  }
  if (reply && reply->cut_off) {
    end_session_begun_by(ask, *reply);
    return std::unexpected(*std::move(reply->cut_off));
  }
  if (!reply || !is_of_gateway(*reply)) return reply;
  return fail(reply->status, seen(*reply) + ", without a message of MCP");
}

void Examination::end_session_begun_by(const Ask& ask, const Reply& reply) {
  const std::string session(reply.header("Mcp-Session-Id"));
  if (!ask.revision.empty() && !session.empty()) end_session(session);
}

void Examination::end_session(const std::string& session) {
  (void)exchange(farewell(session, open_.at(session)));
}

void Examination::end_sessions() {
  const auto open = open_;
  for (const auto& [session, revision] : open) end_session(session);
}

Duration Examination::patience_to_start() const {
  return std::max<Duration>(Ask::kPatience, requester_->left() / 3);
}

Result<Reply> Examination::ask_something_simple() {
  std::vector<Ask> asks;
  const LegacyEra* const era = legacy_era();
  if (answers_discover) {
    asks.push_back(modern("server/discover"));
  } else if (era == nullptr) {
    asks.push_back(initialize(newest_revision(Era::legacy).name));
  } else {
    asks.push_back(legacy(*era, "ping"));
    // Some servers are silent to `ping` alone.
    const std::string_view list = declared_list(era->result);
    if (!list.empty()) asks.push_back(legacy(*era, list));
  }
  Result<Reply> reply = fail(kLimitReached, "not asked");
  for (Ask& each : asks) {
    each.at_least = kLastPatience;
    reply = exchange(each);
    if (reply) end_session_begun_by(each, *reply);
    if (reply || reply.error().code == kLimitReached) break;
  }
  return reply;
}

Error Examination::look_again(Error why) {
  if (why.code != kGatewayTimeout) (void)requester_->pause(kRestartTime);
  const Result<Reply> again = ask_something_simple();
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
                                       {"params", std::move(params)}}),
          .asked = std::string(method)};
}

Ask Examination::legacy(const LegacyEra& era, std::string_view method, json::object params) {
  return {.headers = headers_of_session(era),
          .body = to_json(json::object{{"jsonrpc", "2.0"},
                                       {"id", next_id()},
                                       {"method", method},
                                       {"params", std::move(params)}}),
          .asked = std::string(method)};
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
  // The field with the revision is for what follows.
  return {.headers = first_headers(),
          .body = to_json(json::object{{"jsonrpc", "2.0"},
                                       {"id", next_id()},
                                       {"method", "initialize"},
                                       {"params",
                                        {{"protocolVersion", revision},
                                         {"capabilities", json::object()},
                                         {"clientInfo", client_of_doctor()}}}}),
          .patience = patience_to_start(),
          .revision = std::string(revision)};
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

// Sessions of the legacy era over HTTP.

#include <algorithm>
#include <array>
#include <utility>

#include "cli/doctor/server/examination.hpp"
#include "cli/doctor/server/http_rules.hpp"

namespace sluice {
namespace {

/// Ids that are shorter can be guessed: a UUID has 36 characters.
constexpr std::size_t kShortId = 16;

/// The era whose server has sessions; null: there is none.
const LegacyEra* era_with_session(const Examination& examination) {
  const LegacyEra* const era = examination.legacy_era();
  return era == nullptr || era->session.empty() ? nullptr : era;
}

std::optional<Verdict> check_session_id(Examination& examination) {
  const LegacyEra* const era = examination.legacy_era();
  if (era == nullptr) return {};
  if (era->session.empty()) return Verdict::note("the server keeps no sessions");
  const bool is_visible =
      std::ranges::all_of(era->session, [](char c) { return c >= 0x21 && c <= 0x7e; });
  if (!is_visible) {
    return Verdict::fail("the id has characters that are not visible ASCII",
                         "Use only the characters 0x21 to 0x7E, such as those of a UUID");
  }
  return Verdict::ok(std::to_string(era->session.size()) + " characters of visible ASCII");
}

std::optional<Verdict> check_session_secret(Examination& examination) {
  const LegacyEra* const era = era_with_session(examination);
  if (era == nullptr) return {};
  const bool is_shared = std::ranges::any_of(examination.legacy_eras, [&](const LegacyEra& other) {
    return &other != era && other.session == era->session;
  });
  if (is_shared) {
    return Verdict::fail("two sessions have the same id", "Give each session an id of its own");
  }
  if (era->session.size() < kShortId) {
    return Verdict::warn("the id has only " + std::to_string(era->session.size()) +
                             " characters, so that it can be guessed",
                         "Use a random id, such as a UUID");
  }
  return Verdict::ok("each session has its own id");
}

std::optional<Verdict> check_no_session(Examination& examination) {
  const LegacyEra* const era = era_with_session(examination);
  if (era == nullptr) return {};
  Ask ask = examination.legacy(*era, "ping");
  ask.may_be_refused = true;
  remove_field(ask, "Mcp-Session-Id");
  const Result<Reply> reply = examination.ask(ask);
  if (!reply) return Verdict::unanswered(reply.error());
  const std::string found = seen(*reply) + " to a request without a session";
  if (reply->status == 400) return Verdict::ok(found);
  if (reply->status / 100 == 2) return Verdict::note(found + ", which the server does not require");
  return Verdict::warn(found, "Answer 400 Bad Request");
}

std::optional<Verdict> check_unknown_session(Examination& examination) {
  const LegacyEra* const era = era_with_session(examination);
  if (era == nullptr) return {};
  Ask ask = examination.legacy(*era, "ping");
  ask.may_be_refused = true;
  set_field(ask, "Mcp-Session-Id", "sluice-doctor-no-such-session");
  const Result<Reply> reply = examination.ask(ask);
  if (!reply) return Verdict::unanswered(reply.error());
  const std::string found = seen(*reply) + " to an unknown session";
  if (reply->status == 404) return Verdict::ok(found);
  const std::string fix =
      "Answer 404 Not Found: without it clients do not start a new session after a restart";
  // The clause is about sessions that have ended; this one has never been.
  return reply->status / 100 == 4 ? Verdict::warn(found, fix) : Verdict::fail(found, fix);
}

std::optional<Verdict> check_deleted_session(Examination& examination) {
  const LegacyEra* const era = era_with_session(examination);
  if (era == nullptr) return {};
  Ask end = examination.notification(*era, "");
  end.method = "DELETE";
  end.body.clear();
  remove_field(end, "Content-Type");
  const Result<Reply> ended = examination.ask(end);
  if (!ended) return Verdict::unanswered(ended.error());
  if (ended->status == 405) return Verdict::note("clients may not end their sessions: HTTP 405");
  if (ended->status / 100 != 2) {
    return Verdict::fail(seen(*ended) + " to DELETE",
                         "End the session, or answer 405 Method Not Allowed");
  }
  Ask ask = examination.legacy(*era, "ping");
  ask.may_be_refused = true;
  const Result<Reply> after = examination.ask(ask);
  if (!after) return Verdict::unanswered(after.error());
  const std::string found = seen(*after) + " in a session that was deleted";
  if (after->status == 404) return Verdict::ok(found);
  return Verdict::fail(found, "Answer 404 Not Found once a session has ended");
}

constexpr std::array kSessionChecks = {
    ServerCheck{"session id", "2025-11-25, Transports, Session Management, item 1",
                check_session_id},
    ServerCheck{"session secrecy", "2025-11-25, Transports, Session Management, item 1",
                check_session_secret},
    ServerCheck{"no session", "2025-11-25, Transports, Session Management, item 2",
                check_no_session},
    ServerCheck{"unknown session", "2025-11-25, Transports, Session Management, item 3",
                check_unknown_session},
    ServerCheck{"deleted session", "2025-11-25, Transports, Session Management, items 3 and 5",
                check_deleted_session},
};

}  // namespace

std::span<const ServerCheck> session_checks() {
  return kSessionChecks;
}

}  // namespace sluice

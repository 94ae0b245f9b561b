#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cli/doctor/report/check.hpp"
#include "cli/terminal/terminal.hpp"
#include "core/error.hpp"

namespace sluice {

// Messages of kLimitReached, which begin with kNotExamined.

inline constexpr std::string_view kNotExamined = "not examined: ";

/// If the server is not there any more, or does not answer.
inline constexpr std::string_view kServerHasGone = "not examined: the server has gone";

/// If it refuses requests because there were too many.
inline constexpr std::string_view kLimitsRequests =
    "not examined: the server limits requests (HTTP 429)";

/// If it answers only those who are authorized.
inline constexpr std::string_view kBehindLogin = "not examined: behind a login";

/// If there is no time left.
inline constexpr std::string_view kTimeIsOver = "not examined: the time of the examination is over";

inline constexpr std::string_view kAnswerEach = "Answer each request, if only with an error";

/// What a check has come to.
struct Verdict {
  Check::Status status = Check::Status::ok;
  std::string finding;
  std::string fix = {};

  static Verdict ok(std::string finding) { return {Check::Status::ok, std::move(finding)}; }
  static Verdict note(std::string finding, std::string fix = {}) {
    return {Check::Status::note, std::move(finding), std::move(fix)};
  }
  static Verdict warn(std::string finding, std::string fix) {
    return {Check::Status::warn, std::move(finding), std::move(fix)};
  }
  static Verdict fail(std::string finding, std::string fix) {
    return {Check::Status::fail, std::move(finding), std::move(fix)};
  }
  /// There was no reply to what the server must answer.
  static Verdict unanswered(const Error& why) {
    if (why.code == kLimitReached) return note(why.message);
    return fail(why.message, std::string(kAnswerEach));
  }
};

/// One thing that is examined of a Subject.
template <class Subject>
struct CheckOf {
  std::string_view subject;
  std::string_view clause;  // that says how it should be
  /// Nothing: it does not apply to this server.
  std::optional<Verdict> (*examine)(Subject& subject);
};

/// The line of the report. What servers have said is made safe to show.
inline Check to_check(std::string_view subject, std::string clause, const Verdict& verdict) {
  return {.status = verdict.status,
          .subject = std::string(subject),
          .finding = one_line(verdict.finding),
          .fix = one_line(verdict.fix),
          .clause = std::move(clause)};
}

}  // namespace sluice

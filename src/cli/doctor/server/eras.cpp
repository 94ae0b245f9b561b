// Which eras and transports a server at an HTTP URL speaks.

#include <algorithm>
#include <array>
#include <utility>

#include "cli/doctor/server/examination.hpp"
#include "cli/terminal/terminal.hpp"
#include "core/text/secrets.hpp"
#include "json/members.hpp"
#include "net/http/status_codes.hpp"
#include "protocol/error_codes.hpp"

namespace sluice {
namespace {

constexpr std::string_view kUnknownRevision = "1900-01-01";

void end_session_of(Examination& examination, const LegacyEra& era) {
  if (!era.session.empty()) (void)examination.ask(Examination::farewell(era.session, era.spoken));
}

Result<Reply> ask_discover(Examination& examination, bool is_anonymous) {
  Ask ask = examination.modern("server/discover");
  ask.is_anonymous = is_anonymous;
  // The anonymous one is the first request of all.
  if (is_anonymous) ask.patience = examination.patience_to_start();
  Result<Reply> reply = examination.ask(ask);
  examination.answers_discover |= reply && !is_refusal(*reply);
  return reply;
}

void probe_modern(Examination& examination) {
  examination.discover = ask_discover(examination, false);
  if (!examination.discover) return;
  const auto answer = examination.discover->answer();
  const json::object* const result = result_in(answer);
  const json::value* const versions =
      result == nullptr ? nullptr : result->if_contains("supportedVersions");
  examination.is_modern = versions != nullptr && versions->is_array();
  if (result != nullptr) examination.discovered = *result;
}

LegacyEra probe_legacy(Examination& examination, const Revision& revision, bool is_anonymous) {
  Ask ask = examination.initialize(revision.name);
  ask.is_anonymous = is_anonymous;
  LegacyEra era{.asked = &revision, .reply = examination.ask(ask)};
  if (!era.reply) return era;
  const auto answer = era.reply->answer();
  if (const json::object* const result = result_in(answer)) {
    era.spoken = text_at(*result, "protocolVersion");
    era.result = *result;
  }
  era.session = era.reply->header("Mcp-Session-Id");
  return era;
}

/// Whether a revision is refused only because the session of legacy_era() is open.
bool refuses_second_session(Examination& examination) {
  const LegacyEra* const open = examination.legacy_era();
  if (open == nullptr) return false;
  const bool has_refused = std::ranges::any_of(examination.legacy_eras, [&](const LegacyEra& each) {
    return &each > open && each.reply && each.spoken.empty();
  });
  if (!has_refused) return false;
  const LegacyEra again = probe_legacy(examination, *open->asked, false);
  end_session_of(examination, again);
  return again.reply && again.spoken.empty();
}

std::string list_of(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out.append(out.empty() ? "" : ", ").append(word);
  return out;
}

/// What a request has come to, with what the server says about it.
std::string outcome_of(const Result<Reply>& reply) {
  constexpr std::size_t kLongestMessage = 200;
  if (!reply) return reply.error().message;
  const auto answer = reply->answer();
  const json::object* const error = answer ? object_at(*answer, "error") : nullptr;
  const std::string_view message = error == nullptr ? "" : text_at(*error, "message");
  if (!is_of_mcp(*reply) || message.empty()) return seen(*reply);
  return seen(*reply) + " \"" + shortened(without_secrets(one_line(message)), kLongestMessage) +
         "\"";
}

std::optional<Verdict> check_spoken(Examination& examination) {
  std::vector<std::string> spoken;
  if (examination.is_modern) spoken.emplace_back(newest_revision(Era::modern).name);
  for (const LegacyEra& era : examination.legacy_eras) {
    if (era.is_spoken()) spoken.emplace_back(era.asked->name);
  }
  if (!spoken.empty()) return Verdict::ok(list_of(spoken));
  if (examination.old_stream && examination.old_stream->is_event_stream()) {
    return Verdict::note("2024-11-05, by the transport HTTP+SSE, which is deprecated",
                         "Offer Streamable HTTP as well");
  }
  if (examination.refusal()) return Verdict::note(std::string(kBehindLogin));
  const Result<Reply>& discover = examination.discover;
  if (discover && discover->status / 100 == 3) {
    return Verdict::fail(
        seen(*discover) + " to " + masked_url(discover->header("Location")),
        "Use that URL, if it is the right one: clients do not take secrets along a redirect");
  }
  if (const Reply* const forbids = forbidding_reply(examination)) {
    return Verdict::note(
        std::string(kNotExamined) + outcome_of(*forbids) + " to each request",
        "Give the key or the token that the server wants, as with --header \"Authorization: Bearer "
        "TOKEN\"; or let it take requests to this host");
  }
  std::string what = outcome_of(discover) + " to server/discover";
  bool is_server = discover && is_of_mcp(*discover);
  if (!examination.legacy_eras.empty()) {
    const Result<Reply>& newest = examination.legacy_eras.front().reply;
    what += ", " + outcome_of(newest) + " to initialize";
    is_server |= newest && is_of_mcp(*newest);
  }
  if (is_server) {
    return Verdict::fail("no revision is spoken: " + what,
                         "Answer initialize; the log of the server may say why it does not");
  }
  return Verdict::fail("no MCP server answers here: " + what,
                       "Check the URL; most servers are at /mcp");
}

constexpr std::string_view kAnswerUnknown =
    "Answer unknown methods with an error -32601: clients wait for an answer in vain, or take 5xx "
    "for an outage, and may not fall back";

Verdict without_reply(const std::string& what, const Error& why) {
  return Verdict::unanswered(Error(why.code, what + ": " + why.message));
}

Verdict judge_no_discovery(const Examination& examination) {
  const Error& why = examination.discover.error();
  if (examination.answers_discover || why.code == kLimitReached) {
    return without_reply("server/discover, which had a reply before", why);
  }
  return Verdict::warn("server/discover: " + why.message, std::string(kAnswerUnknown));
}

std::optional<Verdict> check_modern_era(Examination& examination) {
  if (examination.is_modern) {
    const json::value& versions = examination.discovered.at("supportedVersions");
    const std::string_view newest = newest_revision(Era::modern).name;
    const bool is_named = std::ranges::any_of(versions.get_array(), [&](const json::value& each) {
      return each.is_string() && std::string_view(each.get_string()) == newest;
    });
    if (is_named) return Verdict::ok("server/discover names " + to_json(versions));
    return Verdict::fail(
        "server/discover is answered for 2026-07-28, but names only " + to_json(versions),
        "List each revision that is served in supportedVersions");
  }
  if (!examination.discover) return judge_no_discovery(examination);
  const int code = error_code_in(examination.discover->answer());
  if (code == kUnsupportedProtocolVersion) {
    return Verdict::note("2026-07-28 is not supported, as the server says itself");
  }
  if (code == kHeaderMismatch || code == kMissingClientCapability) {
    return Verdict::fail(seen(*examination.discover) + " to a correct server/discover",
                         "Implement server/discover, which needs no capabilities");
  }
  // Servers of the legacy era know nothing of it.
  const int status = examination.discover->status;
  const bool is_empty = status / 100 == 2 && !examination.discover->answer();
  if (status >= 500 || is_empty) {
    return Verdict::warn(seen(*examination.discover) + (is_empty ? " without an answer" : "") +
                             " to server/discover, which the server does not know",
                         std::string(kAnswerUnknown));
  }
  return {};
}

std::optional<Verdict> check_discover_result(Examination& examination) {
  if (!examination.is_modern) return {};
  const json::object& result = examination.discovered;
  std::string missing;
  const auto require = [&](std::string_view name, bool is_there) {
    if (!is_there) missing.append(missing.empty() ? "" : ", ").append(name);
  };
  require("capabilities", object_at(result, "capabilities") != nullptr);
  require("resultType", text_at(result, "resultType") == "complete");
  if (!missing.empty()) {
    return Verdict::fail("the result lacks " + missing, "Add what is missing");
  }
  const json::object* const meta = object_at(result, "_meta");
  if (meta == nullptr || object_at(*meta, "io.modelcontextprotocol/serverInfo") == nullptr) {
    return Verdict::warn("the result does not say which server this is",
                         "Add _meta[\"io.modelcontextprotocol/serverInfo\"]");
  }
  return Verdict::ok("complete, within " + in_milliseconds(examination.discover->head_after));
}

std::optional<Verdict> check_legacy_eras(Examination& examination) {
  const LegacyEra* const newest = examination.legacy_era();
  const bool is_server = newest != nullptr || examination.is_modern;
  std::string refused;
  std::string wrong;
  for (const LegacyEra& era : examination.legacy_eras) {
    if (era.is_spoken()) continue;
    if (!era.reply && is_server) {
      return without_reply("initialize with " + std::string(era.asked->name), era.reply.error());
    }
    if (era.spoken.empty()) {
      refused.append(refused.empty() ? "" : ", ").append(era.asked->name);
    } else if (find_revision(era.spoken) == nullptr) {
      wrong = era.spoken;
    }
  }
  if (!wrong.empty()) {
    return Verdict::fail(
        "initialize is answered with the revision \"" + wrong + "\", which does not exist",
        "Answer with a revision that the server speaks");
  }
  if (newest == nullptr) return {};
  if (examination.has_one_session) {
    return Verdict::warn(
        "initialize is refused while a session is open: only one session at a time",
        "Give each client a session of its own: a second one cannot connect");
  }
  if (!refused.empty()) {
    return Verdict::fail("initialize with " + refused + " is refused",
                         "Answer with another revision that the server speaks; the client decides "
                         "whether it goes on");
  }
  return Verdict::ok("each revision gets an answer");
}

std::optional<Verdict> check_unknown_revision(Examination& examination) {
  if (examination.legacy_era() == nullptr || examination.has_one_session) return {};
  const Result<Reply> reply = examination.ask(examination.initialize(kUnknownRevision));
  if (!reply) return Verdict::unanswered(reply.error());
  const auto answer = reply->answer();
  const json::object* const result = result_in(answer);
  const std::string spoken(result == nullptr ? "" : text_at(*result, "protocolVersion"));
  end_session_of(examination, {.asked = &newest_revision(Era::legacy),
                               .spoken = spoken,
                               .session = std::string(reply->header("Mcp-Session-Id"))});
  if (spoken.empty()) {
    return Verdict::fail(seen(*reply) + " to initialize with " + std::string(kUnknownRevision),
                         "Answer with the newest revision that the server speaks");
  }
  if (find_revision(spoken) == nullptr) {
    return Verdict::fail("the server agrees to " + spoken + ", which does not exist",
                         "Answer with the newest revision that the server speaks");
  }
  return Verdict::ok("the server offers " + spoken + " instead");
}

std::optional<Verdict> check_initialize_result(Examination& examination) {
  const LegacyEra* const era = examination.legacy_era();
  if (era == nullptr) return {};
  if (object_at(era->result, "capabilities") == nullptr) {
    return Verdict::fail("the result of initialize has no capabilities", "Add capabilities");
  }
  const json::object* const info = object_at(era->result, "serverInfo");
  if (info == nullptr || text_at(*info, "name").empty() || !info->contains("version")) {
    return Verdict::fail("the result of initialize has no serverInfo with name and version",
                         "Add serverInfo");
  }
  return Verdict::ok("complete, within " + in_milliseconds(era->reply->head_after));
}

/// A server of the modern era alone.
std::optional<Verdict> check_initialize_refusal(Examination& examination) {
  if (!examination.is_modern || examination.legacy_eras.empty()) return {};
  const LegacyEra& era = examination.legacy_eras.front();
  if (examination.legacy_era() != nullptr || !era.reply || !era.spoken.empty()) return {};
  const bool names_versions = era.reply->body.contains(newest_revision(Era::modern).name) ||
                              std::ranges::any_of(era.reply->events, [](const ReplyEvent& event) {
                                return event.data.contains(newest_revision(Era::modern).name);
                              });
  if (names_versions) return Verdict::ok("the refusal of initialize names what is served");
  return Verdict::warn(seen(*era.reply) + " to initialize does not name the revisions",
                       "Name the supported versions in the error: old clients show nothing else");
}

std::optional<Verdict> check_old_stream(Examination& examination) {
  if (!examination.old_stream) return {};
  const Reply& reply = *examination.old_stream;
  if (!reply.is_event_stream()) return {};
  if (reply.events.empty()) {
    return Verdict::fail("no event within " + in_milliseconds(std::chrono::seconds(5)),
                         "Send the event `endpoint` at once; if the server does, something in "
                         "between holds the stream back");
  }
  const ReplyEvent& first = reply.events.front();
  if (first.type != "endpoint") {
    return Verdict::fail("the first event is `" + first.type + "`", "Send `endpoint` first");
  }
  const bool is_path = first.data.starts_with('/') && !first.data.starts_with("//");
  const Result<Url> place = parse_url(first.data);
  const Url& server = examination.server();
  if (is_path || (place && place->host == server.host && place->port == server.port) ||
      !first.data.contains("://")) {
    return Verdict::ok("the endpoint arrives after " + in_milliseconds(*reply.body_after));
  }
  return Verdict::fail("the endpoint is at another origin: " + masked_url(first.data),
                       "Name a path, or a URL of the same origin: clients refuse others");
}

constexpr std::array kEraChecks = {
    ServerCheck{"revisions", "2026-07-28, Versioning, Protocol Version Negotiation", check_spoken},
    ServerCheck{"discovery", "2026-07-28, Discovery", check_modern_era},
    ServerCheck{"discover result", "2026-07-28, Discovery, DiscoverResult", check_discover_result},
    ServerCheck{"initialize", "2025-11-25, Lifecycle, Version Negotiation", check_legacy_eras},
    ServerCheck{"unknown revision", "2025-11-25, Lifecycle, Version Negotiation",
                check_unknown_revision},
    ServerCheck{"initialize result", "2025-11-25, Lifecycle, Initialization",
                check_initialize_result},
    ServerCheck{"old clients",
                "2026-07-28, Versioning, Backward Compatibility with Initialization-Based Versions",
                check_initialize_refusal},
    ServerCheck{"HTTP+SSE", "2024-11-05, Transports, HTTP with SSE", check_old_stream},
};

}  // namespace

const Reply* forbidding_reply(const Examination& examination) {
  if (examination.is_modern || examination.legacy_eras.empty()) return nullptr;
  const Result<Reply>& newest = examination.legacy_eras.front().reply;
  const auto forbids = [](const Result<Reply>& reply) {
    return reply && reply->status == kForbidden;
  };
  return forbids(examination.discover) && forbids(newest) ? &*newest : nullptr;
}

std::span<const ServerCheck> era_checks() {
  return kEraChecks;
}

Result<Reply> first_reply(Examination& examination, bool is_anonymous) {
  Result<Reply> reply = ask_discover(examination, is_anonymous);
  if (reply || reply.error().code == kLimitReached) return reply;
  // Some servers are silent to methods that they do not know.
  LegacyEra era = probe_legacy(examination, newest_revision(Era::legacy), is_anonymous);
  end_session_of(examination, era);
  return era.reply ? std::move(era.reply) : std::move(reply);
}

void probe_eras(Examination& examination) {
  probe_modern(examination);
  for (const Revision& revision : revisions()) {
    if (revision.era != Era::legacy) continue;
    LegacyEra era = probe_legacy(examination, revision, false);
    // The first one that is spoken is the one that the checks use.
    if (examination.legacy_era() != nullptr || !era.is_spoken()) end_session_of(examination, era);
    examination.legacy_eras.push_back(std::move(era));
  }
  if (examination.limit()) {
    if (const LegacyEra* const era = examination.legacy_era()) end_session_of(examination, *era);
    return;
  }
  examination.has_one_session = refuses_second_session(examination);
  if (examination.is_modern || examination.legacy_era() != nullptr) return;
  Result<Reply> stream = examination.ask(
      {.method = "GET", .headers = {{"Accept", "text/event-stream"}}, .until = Until::first_event});
  if (stream) examination.old_stream = *std::move(stream);
}

}  // namespace sluice

#include "client/session/handshake/handshake.hpp"

#include <algorithm>
#include <utility>

#include "client/reply.hpp"
#include "client/session/contract/server_link.hpp"
#include "json/members.hpp"
#include "net/http/status_codes.hpp"
#include "protocol/error_codes.hpp"
#include "protocol/negotiation.hpp"

namespace sluice {
namespace {

/// Whether a JSON array has the name of a revision.
bool is_among(const json::value* names, const Revision& revision) {
  return names != nullptr && names->is_array() &&
         std::ranges::any_of(names->get_array(), [&revision](const json::value& name) {
           return name.is_string() && name.get_string() == revision.name;
         });
}

/// The newest revision of `era` among the names in a JSON array; null if there is none.
const Revision* newest_of(const json::value* names, Era era) {
  for (const Revision& each : revisions()) {
    if (each.era == era && is_among(names, each)) return &each;
  }
  return nullptr;
}

/// The same of those that an error says are supported (2026-07-28,
/// UnsupportedProtocolVersionError).
const Revision* newest_supported(const Error& why, Era era) {
  const Result<json::value> data = parse_json(why.data);
  const json::object* const members = data ? data->if_object() : nullptr;
  return members == nullptr ? nullptr : newest_of(members->if_contains("supported"), era);
}

}  // namespace

json::object description_of(const ClientInfo& info) {
  json::object out{{"name", info.name}, {"version", info.version}};
  if (!info.title.empty()) out["title"] = info.title;
  return out;
}

bool is_probe(std::string_view method) {
  return method == "server/discover";
}

bool is_handshake(std::string_view method) {
  return method == "initialize" || is_probe(method);
}

bool is_about_access(int status, bool is_of_probe) {
  const bool is_trouble = is_of_probe ? is_passing_trouble(status) : status >= kInternalServerError;
  return status == kUnauthorized || status == kForbidden || status == kTooManyRequests ||
         is_trouble;
}

bool is_refusal(const Error& why) {
  return !is_about_access(why.code, false) && why.code != kTimedOut;
}

void Handshake::start(Done done) {
  done_ = std::move(done);
  const std::string& name = options_->revision;
  const Revision* const pinned = name.empty() ? nullptr : find_revision(name);
  if (!name.empty() && pinned == nullptr) {
    session_->later([this] {
      fail({kUnsupportedProtocolVersion,
            "This client does not speak revision \"" + options_->revision + "\", but " +
                revisions_json(),
            {}});
    });
    return;
  }
  session_->open();
  if (pinned != nullptr && pinned->era == Era::modern && !options_->asks_first) {
    session_->speak(*pinned);
    session_->later([this, pinned] { succeed(*pinned, {}); });
  } else if (pinned != nullptr && pinned->era == Era::legacy) {
    initialize(*pinned);
  } else if (pinned == nullptr && options_->expects_legacy) {
    fall_back();
  } else {
    discover(pinned != nullptr ? *pinned : newest_revision(Era::modern));
  }
}

void Handshake::renew(const Revision& spoken, Done done) {
  done_ = std::move(done);
  is_renewing_ = true;
  late_.reset();
  initialize(spoken);
}

void Handshake::on_answer(Result<json::object> answer) {
  if (const Revision* const asked = std::exchange(asked_, nullptr)) {
    on_discovered(*asked, std::move(answer));
  } else {
    on_initialized(std::move(answer));
  }
}

void Handshake::discover(const Revision& revision) {
  asked_ = &revision;
  session_->speak(revision);
  session_->ask("server/discover", {}, options_->probe_timeout);
}

void Handshake::on_discovered(const Revision& asked, Result<json::object> answer) {
  if (answer) return choose(asked, std::move(*answer));
  const Error& error = answer.error();
  if (error.code == kUnsupportedProtocolVersion) {
    if (!may_probe_again()) return fail(error);
    if (const Revision* const modern = newest_supported(error, Era::modern)) {
      return discover(*modern);
    }
    const Revision* const legacy = newest_supported(error, Era::legacy);
    return legacy == nullptr ? fail(error) : initialize(*legacy);
  }
  if (!options_->revision.empty()) return fail(error);
  // Whatever else it says, it does not know the question: it is a legacy server, or it has died of
  // the question.
  if (!session_->reopen()) return fail(error);
  fall_back();
}

bool Handshake::may_probe_again() {
  return options_->revision.empty() && !is_renewing_ && !std::exchange(has_probed_twice_, true);
}

void Handshake::choose(const Revision& asked, json::object about) {
  const json::value* const names = about.if_contains("supportedVersions");
  // It has answered in the revision it was asked in, so without a list that is the one.
  if (names == nullptr || !names->is_array()) return succeed(asked, std::move(about));
  if (options_->revision.empty()) {
    if (const Revision* const modern = newest_of(names, Era::modern)) {
      return succeed(*modern, std::move(about));
    }
    if (const Revision* const legacy = newest_of(names, Era::legacy)) return initialize(*legacy);
  } else if (is_among(names, asked)) {
    return succeed(asked, std::move(about));
  }
  const std::string& pinned = options_->revision;
  fail({kUnsupportedProtocolVersion,
        pinned.empty()
            ? "The server lists no revision that this client speaks, which are " + revisions_json()
            : "The server does not list revision \"" + pinned + "\", which it was to speak",
        to_json(json::object{{"supported", *names}})});
}

void Handshake::on_late_answer(json::object about) {
  if (done_ && asked_ == nullptr && !is_renewing_) late_ = std::move(about);
}

bool Handshake::takes_for_legacy(const Error& why) const {
  return asked_ != nullptr && options_->revision.empty() &&
         (!is_about_access(why.code, true) || why.code == kLostConnection);
}

void Handshake::fall_back() {
  asked_ = nullptr;
  initialize(newest_revision(Era::legacy));
}

void Handshake::initialize(const Revision& revision) {
  session_->speak(revision);
  session_->ask("initialize",
                {{"protocolVersion", revision.name},
                 {"capabilities", options_->capabilities},
                 {"clientInfo", description_of(options_->info)}},
                options_->connect_timeout);
}

void Handshake::on_refused(Error why) {
  if (auto late = std::exchange(late_, std::nullopt)) {
    return choose(newest_revision(Era::modern), *std::move(late));
  }
  const Revision* const modern =
      why.code == kUnsupportedProtocolVersion ? newest_supported(why, Era::modern) : nullptr;
  if (modern == nullptr || !may_probe_again()) return fail(std::move(why));
  discover(*modern);
}

void Handshake::on_initialized(Result<json::object> answer) {
  if (!answer) return on_refused(std::move(answer.error()));
  const std::string name(text_at(*answer, "protocolVersion"));
  const Revision* const agreed = find_revision(name);
  if (agreed == nullptr || agreed->era != Era::legacy ||
      (!options_->revision.empty() && options_->revision != name)) {
    return fail({kUnsupportedProtocolVersion,
                 "The server speaks revision \"" + name + "\", which " +
                     (agreed == nullptr ? "is not known here" : "was not asked for"),
                 {}});
  }
  session_->speak(*agreed);
  if (Result<void> sent = session_->notify("notifications/initialized", {}); !sent) {
    return fail(std::move(sent.error()));
  }
  succeed(*agreed, std::move(*answer));
}

void Handshake::succeed(const Revision& revision, json::object about) {
  if (const auto done = std::exchange(done_, {})) {
    done(ServerDescription{.revision = &revision, .about = std::move(about)});
  }
}

void Handshake::fail(Error why) {
  if (const auto done = std::exchange(done_, {})) done(std::unexpected(std::move(why)));
}

}  // namespace sluice

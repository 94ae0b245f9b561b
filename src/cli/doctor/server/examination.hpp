#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/doctor/server/check_table.hpp"
#include "cli/doctor/server/requester.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "json/json.hpp"
#include "net/http/url.hpp"
#include "protocol/revision.hpp"

namespace sluice {

/// What `initialize` with one legacy revision has given.
struct LegacyEra {
  const Revision* asked = nullptr;
  std::string spoken = {};  // the revision of the answer; empty: it was refused
  std::string session = {};
  Result<Reply> reply = fail(kLimitReached, "not asked");  // or why there was none
  json::object result = {};

  [[nodiscard]] bool is_spoken() const { return spoken == asked->name; }
};

/// An authorization server and what it says about itself.
struct AuthorizationServerFacts {
  std::string issuer;    // as the MCP server names it
  Error problem;         // why there is no document
  std::string document;  // JSON
};

/// How the server wants to be authorized.
struct AuthorizationFacts {
  Reply refusal = {};             // of a request without a token
  std::string document_url = {};  // of the protected resource metadata; empty: there is none
  std::string document = {};      // JSON
  Error problem = {};             // why there is no document
  std::vector<AuthorizationServerFacts> servers = {};  // at most kMaxServers of those it names
  std::optional<Reply> bad_token = {};                 // the reply to a token that nobody issued

  static constexpr std::size_t kMaxServers = 3;
};

/// A request that was refused for want of an authorization.
struct RefusedAsk {
  Ask ask;
  Reply reply;
};

/// What the checks of an HTTP server know, and how they ask for more. Belongs to one thread.
class Examination {
 public:
  /// `is_private`: only this machine or its networks reach the server.
  Examination(Requester& requester, Url server, bool is_private)
      : requester_(&requester), server_(std::move(server)), is_private_(is_private) {}

  [[nodiscard]] const Url& server() const { return server_; }
  [[nodiscard]] bool is_private() const { return is_private_; }

  /// As Requester::ask(), and once more if the connection breaks. A server that has replied before,
  /// and does not now, is asked for something simple. If it does not reply to that either, it has
  /// gone: this request and all that follow are kLimitReached. So are they if the server limits
  /// requests for longer than a moment. What a gateway says in its place is no reply, nor is one
  /// that is cut off: if it has begun a session, that is ended. A stream that ends before the
  /// answer is resumed once. A refusal of who is not anonymous is kLimitReached, unless the request
  /// may be refused and the server has answered another of the same method.
  Result<Reply> ask(const Ask& ask);
  /// Ends the sessions that are still open, whatever has become of the server.
  void end_sessions();
  Result<OauthReply> fetch(const std::string& url) { return requester_->fetch(url); }

  /// Why the server has gone; nothing: it has not, as far as is known.
  [[nodiscard]] const std::optional<Error>& gone() const { return gone_; }
  /// The last kLimitReached but those of refusals: why something could not be asked.
  [[nodiscard]] const std::optional<Error>& limit() const { return limit_; }
  /// The first request that was refused for want of an authorization, though not anonymous.
  [[nodiscard]] const std::optional<RefusedAsk>& refusal() const { return refusal_; }
  /// How long a server may take that may have to be started first.
  [[nodiscard]] Duration patience_to_start() const;

  /// A request of 2026-07-28 that is as it should be. Its id is its own.
  Ask modern(std::string_view method, json::object params = {});
  /// A request in the session of `era`.
  Ask legacy(const LegacyEra& era, std::string_view method, json::object params = {});
  /// A message without an id there.
  [[nodiscard]] Ask notification(const LegacyEra& era, std::string_view method) const;
  /// Ends a session.
  [[nodiscard]] static Ask farewell(std::string_view session, std::string_view revision);
  /// `initialize` with any revision.
  Ask initialize(std::string_view revision);

  /// The newest legacy era that is spoken, with its session; null: none is.
  [[nodiscard]] const LegacyEra* legacy_era() const;
  /// The id of the last request.
  [[nodiscard]] std::string last_id() const { return "doctor-" + std::to_string(last_id_); }

  bool is_socket = false;  // the server is at a Unix socket, where no browser reaches it

  // What probe_eras() has found out.

  bool answers_discover = false;  // server/discover has had a reply that is no refusal
  bool is_modern = false;         // it was answered as 2026-07-28 says
  /// The last reply to it, or why there was none.
  Result<Reply> discover = fail(kLimitReached, "not asked");
  json::object discovered = {};             // its result
  std::vector<LegacyEra> legacy_eras = {};  // each revision, newest first
  bool has_one_session = false;             // no other is begun while one is open
  std::optional<Reply> stream = {};         // an event stream of the server, for its head
  /// The reply to GET, of a server that speaks nothing else. Nothing: it was not asked.
  std::optional<Reply> old_stream = {};

  std::optional<AuthorizationFacts> authorization = {};  // nothing: it is open

 private:
  std::string next_id();
  /// As Requester::ask(), but a gateway's reply is an error with its status, and one that is cut
  /// off is the error that says why. A limit of requests that is over soon is waited for.
  Result<Reply> exchange(const Ask& ask);
  /// Knows afterwards which sessions are open, and goes on with a stream that is resumed.
  Result<Reply> exchange_once(const Ask& ask);
  /// Sends the end of an open session.
  void end_session(const std::string& session);
  /// Ends the session that `reply` to `ask` has begun, if it has.
  void end_session_begun_by(const Ask& ask, const Reply& reply);
  /// Asks for what the server replies to, if to anything.
  Result<Reply> ask_something_simple();
  /// After a request that has had no reply because of `why`. The error to give for it.
  Error look_again(Error why);

  Requester* requester_;
  const Url server_;
  const bool is_private_;
  std::uint64_t last_id_ = 0;
  std::map<std::string, std::string> open_ = {};  // the revision of each session, by its id
  Duration slowest_start_{};                      // of the replies to `initialize`
  bool has_replied_ = false;
  /// The methods of requests that are as they should be and had an answer.
  std::set<std::string, std::less<>> answered_;
  bool has_limited_ = false;  // nothing more may be asked but the end of sessions
  std::optional<RefusedAsk> refusal_;
  std::optional<Error> gone_;
  std::optional<Error> limit_;
};

/// How long a server that seems to have gone has to show that it is there.
inline constexpr Duration kLastPatience = std::chrono::seconds(2);
/// How long it has to come again before it is asked.
inline constexpr Duration kRestartTime = std::chrono::milliseconds(500);
/// How long a limit of requests is waited for.
inline constexpr Duration kLongestLimit = std::chrono::seconds(2);

using ServerCheck = CheckOf<Examination>;

void run_checks(std::span<const ServerCheck> checks, Examination& examination, Checks& out);

/// "HTTP 400, error -32020", for findings.
std::string seen(const Reply& reply);
/// A duration as "12 ms".
std::string in_milliseconds(Duration duration);

// The checks by topic, in the order to run them.

std::span<const ServerCheck> era_checks();
std::span<const ServerCheck> modern_http_checks();
std::span<const ServerCheck> legacy_http_checks();
std::span<const ServerCheck> streaming_checks();
std::span<const ServerCheck> authorization_checks();
/// The last of them ends the session of legacy_era().
std::span<const ServerCheck> session_checks();

/// The reply to server/discover, or to `initialize` if there is none. Error: why there is none to
/// the former.
Result<Reply> first_reply(Examination& examination, bool is_anonymous);
/// Asks which eras the server speaks. Opens a session for each legacy revision, and ends all but
/// that of legacy_era(). If not all could be asked, there is a limit(), and all sessions are ended.
void probe_eras(Examination& examination);
/// The reply of a server that forbids server/discover and `initialize` alike, without a challenge;
/// null: it does not. Call after probe_eras().
const Reply* forbidding_reply(const Examination& examination);
/// Whether the server refuses `reply`'s request for want of authorization.
bool is_refusal(const Reply& reply);
/// Reads the documents that say how to be authorized, beginning with the refusal, and asks the same
/// with a token that nobody has issued.
void gather_authorization(Examination& examination, RefusedAsk refusal);

}  // namespace sluice

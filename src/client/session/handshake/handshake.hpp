#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "client/session/contract/client_session_options.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/unique_function.hpp"
#include "json/json.hpp"
#include "protocol/revision.hpp"
#include "sluice/client_info.hpp"

namespace sluice {

/// A client as its server is told.
json::object description_of(const ClientInfo& info);

/// Whether a method finds out what a server speaks.
bool is_probe(std::string_view method);

/// The same, or begins a session.
bool is_handshake(std::string_view method);

/// Whether an HTTP status says nothing about what the server speaks: credentials, too many
/// requests, the server's own trouble. Servers on the official Java SDK have such trouble with a
/// probe that they do not know, so of one only what a proxy says about its server is that.
bool is_about_access(int status, bool is_of_probe);

/// Whether what refuses a request so, in place of its server, may not understand it: the error is
/// neither about access nor silence.
bool is_refusal(const Error& why);

/// What a session's server has said about itself.
struct ServerDescription {
  const Revision* revision = nullptr;  // that is spoken with it
  json::object about = {};             // the result of `initialize` or `server/discover`
};

/// Finds out what a server speaks, and begins a session with one of the legacy era: the probe
/// (2026-07-28, Versioning, Backward Compatibility) and `initialize`. A state machine without a
/// link. Belongs to its session.
class Handshake {
 public:
  /// Who sends the questions. Its functions never call the handshake.
  class Session {
   public:
    virtual ~Session() = default;
    /// From now on messages are written in this revision.
    virtual void speak(const Revision& revision) = 0;
    /// Sends a question and, later, calls Handshake::on_answer() for it, unless the server is
    /// silent for `patience`: that is an error.
    virtual void ask(std::string method, json::object params, Duration patience) = 0;
    virtual Result<void> notify(std::string_view method, json::object params) = 0;
    /// As those of ServerLink.
    virtual void open() = 0;
    virtual bool reopen() = 0;
    /// Runs `task` in a later turn, unless the session is gone by then.
    virtual void later(UniqueFunction<void()> task) = 0;
  };
  using Done = std::function<void(Result<ServerDescription>)>;

  /// `options` outlive this.
  Handshake(Session& session, const ClientSessionOptions& options)
      : session_(&session), options_(&options) {}

  /// Opens the link and begins. `done` is called once, not from within this function.
  void start(Done done);
  /// Begins another session, in the revision that is spoken. `done` as above.
  void renew(const Revision& spoken, Done done);

  [[nodiscard]] bool is_running() const { return static_cast<bool>(done_); }
  void on_answer(Result<json::object> answer);
  /// The result of a probe that was given up for the server's silence. It counts if `initialize`
  /// fails: a server that starts slowly is no legacy one.
  void on_late_answer(json::object about);
  /// Whether the link's end is taken for the answer of a legacy server to the probe. If so, and the
  /// link is open again, call fall_back().
  [[nodiscard]] bool takes_for_legacy(const Error& why) const;
  void fall_back();
  /// Calls `done`, if it is still running.
  void fail(Error why);
  /// Nobody wants to know any more.
  void drop() { done_ = {}; }

 private:
  void discover(const Revision& revision);
  void on_discovered(const Revision& asked, Result<json::object> answer);
  /// Chooses a revision from the result of a probe in `asked`.
  void choose(const Revision& asked, json::object about);
  /// Whether the server may be probed, or begun with, once more in a revision that it names.
  bool may_probe_again();
  void initialize(const Revision& revision);
  void on_refused(Error why);
  void on_initialized(Result<json::object> answer);
  void succeed(const Revision& revision, json::object about);

  Session* session_;
  const ClientSessionOptions* options_;
  Done done_;                        // empty: it is not running
  const Revision* asked_ = nullptr;  // the revision of the probe; null while there is none
  bool has_probed_twice_ = false;
  bool is_renewing_ = false;          // in the revision that was found before, and in no other
  std::optional<json::object> late_;  // the answer to the probe
};

}  // namespace sluice

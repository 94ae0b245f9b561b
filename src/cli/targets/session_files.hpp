#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "cli/targets/config_places.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "net/loop/descriptor.hpp"

namespace sluice {

/// A session that `sluice session start` has begun.
struct SessionInfo {
  std::string name;
  std::string target = {};  // what it is connected to, without secrets
  std::string server = {};  // its name and version; empty: it is still being connected
  std::string since = {};   // UTC, as 2026-07-28T12:00:00.000Z
  std::optional<Duration> request_timeout = {};  // of its target
  pid_t process = 0;                             // 0: it is about to begin
  /// The number is, or may be, that of another machine or container, which has the same folder.
  bool is_elsewhere = false;
};

/// Whether a session may have this name: 1 to kMaxSessionName letters, digits, `.`, `_` and `-`,
/// of which a letter or a digit is the first.
bool is_session_name(std::string_view name);
inline constexpr std::size_t kMaxSessionName = 64;

/// Whether `word` is a target @NAME.
bool is_session_word(std::string_view word);

/// The name of a session, for as long as somebody has it: the process that has made this, and those
/// that it has forked meanwhile. The kernel gives it back when they have ended.
class SessionClaim {
 public:
  /// `lock`: the file of the info, which is locked.
  SessionClaim(std::string base, Descriptor lock)
      : base_(std::move(base)), lock_(std::move(lock)) {}

  [[nodiscard]] int descriptor() const { return lock_.get(); }
  /// Where the session listens, and where its standard error goes.
  [[nodiscard]] std::string socket() const { return base_ + ".sock"; }
  [[nodiscard]] std::string log() const { return base_ + ".log"; }
  /// Tells others what the session is. Errors carry kExitFailure.
  [[nodiscard]] Result<void> write(const SessionInfo& info) const;
  /// Removes what there is of the session. Call it last, before it is given back.
  void remove_files(bool keeps_log) const;

 private:
  std::string base_;
  Descriptor lock_;
};

/// The files of a user's sessions: NAME.json, which the session's process keeps locked, NAME.sock
/// and NAME.log. What a session has left that was killed is removed by whoever looks at it, except
/// for its log.
class SessionFiles {
 public:
  /// `folder` is made when a name is claimed, for this user only (mode 0700). It is refused if
  /// others may use it.
  explicit SessionFiles(std::string folder) : folder_(std::move(folder)) {}

  /// Takes a name that no session has. Errors: kExitUsage if it is no name, or in use, or if
  /// kMaxSessions run; kExitFailure if the folder cannot be used.
  [[nodiscard]] Result<SessionClaim> claim(const std::string& name) const;
  /// The sessions that run, by name. Errors carry kExitFailure.
  [[nodiscard]] Result<std::vector<SessionInfo>> running() const;
  /// The session of that name. Errors: kExitUsage, with the names that there are.
  [[nodiscard]] Result<SessionInfo> find(const std::string& name) const;
  [[nodiscard]] std::string socket(const std::string& name) const { return base(name) + ".sock"; }

  static constexpr std::size_t kMaxSessions = 100;

 private:
  [[nodiscard]] std::string base(const std::string& name) const { return folder_ + "/" + name; }
  /// Whether the folder is there and nobody else may use it.
  [[nodiscard]] Result<bool> is_usable() const;
  [[nodiscard]] std::vector<std::string> names() const;
  /// Nothing if no such session runs.
  [[nodiscard]] std::optional<SessionInfo> look(const std::string& name) const;

  std::string folder_;
};

/// $XDG_RUNTIME_DIR/sluice/sessions; else the same in $XDG_STATE_HOME or ~/.local/state. Empty if
/// there is no home either.
std::string sessions_folder(const PlaceSources& sources);

}  // namespace sluice

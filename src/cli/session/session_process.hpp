#pragma once

#include <chrono>
#include <string>

#include "cli/targets/session_files.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "proxy/upstream/upstream.hpp"

namespace sluice {

/// What a session is to be.
struct SessionPlan {
  SessionInfo info;  // its name and its target
  UpstreamOptions upstream;
  Duration idle_time;  // it ends when nobody has used it for so long
};

/// Begins a session in a process of its own, which outlives this one: a proxy at the session's
/// socket, with one session for all of its clients. It leaves the terminal and closes all
/// descriptors of this process, which must have no other threads. Waits until the server is
/// connected, and returns what that calls itself; an interrupt by the user ends the session again.
/// Errors carry an exit code, and leave nothing behind but the log of a program that could not be
/// connected.
Result<std::string> start_session(const SessionFiles& files, SessionPlan plan);

/// Asks the process of a session to end, and waits until it has. It is killed after kStopTime.
/// Errors carry kExitFailure.
Result<void> stop_session(const SessionFiles& files, const SessionInfo& session);
inline constexpr auto kStopTime = std::chrono::seconds(20);

}  // namespace sluice

#include "cli/session/session_process.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <limits>
#include <optional>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "cli/login/authorization_flags.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/options/serve_config.hpp"
#include "cli/proxy/proxy_service.hpp"
#include "cli/session/bounded_log.hpp"
#include "cli/terminal/interrupts.hpp"
#include "cli/terminal/terminal.hpp"
#include "json/members.hpp"
#include "net/process/pidfd.hpp"
#include "protocol/server_info.hpp"

namespace sluice {
namespace {

/// How long calls may take to end once the session is asked to.
constexpr Duration kDrainTime = std::chrono::seconds(2);
/// How long the session may take to report, beyond what connecting may take: a server is probed
/// first, and one that does not answer is ended.
constexpr Duration kReportTime = std::chrono::seconds(30);
constexpr auto kStopPoll = std::chrono::milliseconds(10);
constexpr auto kKillTime = std::chrono::seconds(2);
constexpr std::size_t kMaxServer = 200;  // bytes
constexpr std::size_t kMaxReport = std::size_t{64} << 10U;
constexpr std::size_t kMaxMessage = std::size_t{8} << 10U;  // as JSON it may be six times as long

std::unexpected<Error> session_system_error(std::string_view what) {
  return fail(kExitFailure, std::string(what) + ": " + std::strerror(errno));
}

// --- in the session's process -------------------------------------------------------------------

/// Leaves the terminal, the standard streams, and every descriptor but two.
void detach(int one, int other) {
  ::setsid();
  if (const Descriptor nowhere(::open("/dev/null", O_RDWR | O_CLOEXEC)); nowhere) {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      ::dup2(nowhere.get(), stream);
    }
  }
  const auto close_between = [](int after, unsigned last) {
    const auto first = static_cast<unsigned>(after) + 1;
    if (first <= last) ::syscall(SYS_close_range, first, last, 0);
  };
  const auto [low, high] = std::minmax(one, other);
  close_between(STDERR_FILENO, static_cast<unsigned>(low) - 1);
  close_between(low, static_cast<unsigned>(high) - 1);
  close_between(high, std::numeric_limits<unsigned>::max());
}

std::string server_in(const json::object& about) {
  const json::object* const info = server_info_in(about);
  std::string out(info == nullptr ? "" : text_at(*info, "name"));
  if (out.empty()) return "a server without a name";
  if (const auto version = text_at(*info, "version"); !version.empty()) {
    out.append(" ").append(version);
  }
  return shortened(one_line(out), kMaxServer);
}

/// Returns whether somebody hears it.
bool tell(const Descriptor& report, const json::object& what) {
  return write_all(report.get(), to_json(what) + "\n").has_value();
}

/// Serves until the session is to end. Tells `report` when the server is connected. The error says
/// why it is not, and carries an exit code.
Result<void> serve_session(SessionPlan& plan, const SessionClaim& claim, const Descriptor& report) {
  plan.info.process = ::getpid();
  append_timestamp(plan.info.since, std::chrono::system_clock::now());
  if (auto written = claim.write(plan.info); !written) return written;
  const ShutdownSignals signals;
  ServeConfig config;
  config.tcp = false;
  config.unix_path = claim.socket();
  config.threads = 1;
  config.shutdown_deadline = kDrainTime;
  ProxyOptions options{
      .has_one_session = true,
      .idle = {.after = plan.idle_time, .run = [&signals] { signals.input_ended(); }}};
  options.upstreams.push_back(std::move(plan.upstream));
  auto service = ProxyService::start(config, std::move(options));
  if (!service) return std::unexpected(std::move(service.error()));
  Result<void> outcome;                  // set on the loop, which has ended when it is read
  std::atomic<bool> is_decided = false;  // whether there is a session
  (*service)->open([&](const Result<json::object>& about) {
    if (about) {
      plan.info.server = server_in(*about);
      outcome = claim.write(plan.info);
    } else {
      outcome = fail(exit_code_of(about.error()), about.error().message);
    }
    const bool is_heard = outcome && tell(report, {{"server", plan.info.server}});
    is_decided = true;
    if (!is_heard) signals.input_ended();
  });
  (*service)->run(signals, false, [&] {
    // The name is free at once, although the server may take seconds to end.
    if (!is_decided) claim.remove_files(false);
  });
  service->reset();
  return outcome;
}

Result<void> run_session(SessionPlan& plan, const SessionClaim& claim, const Descriptor& report) {
  detach(claim.descriptor(), report.get());
  try {
    auto log = BoundedLog::open(claim.log());
    if (!log) return std::unexpected(std::move(log.error()));
    return serve_session(plan, claim, report);
  } catch (const std::exception& error) {
    return fail(kExitFailure, error.what());
  }
}

/// The whole life of the process. What fails is told last, when nothing is left of the session.
[[noreturn]] void become_session(SessionPlan& plan, const SessionClaim& claim,
                                 const Descriptor& report) {
  const bool has_program = plan.upstream.starts_program;
  const Result<void> outcome = run_session(plan, claim, report);
  // The program may have said there what it lacks.
  claim.remove_files(!outcome && has_program);
  if (!outcome) {
    tell(report, {{"code", outcome.error().code},
                  {"message", shortened(outcome.error().message, kMaxMessage)}});
  }
  ::_exit(outcome ? kExitOk : kExitFailure);
}

// --- in the process that begins it --------------------------------------------------------------

/// A line, or what there is of it at the end of `report`. Errors: kExitInterrupted, or kExitFailure
/// if `patience` has passed.
Result<std::string> read_report(const Descriptor& report, Duration patience) {
  const Interrupts interrupts;
  const auto until = std::chrono::steady_clock::now() + patience;
  std::string text;
  std::array<char, 4096> piece{};
  while (!text.ends_with('\n') && text.size() < kMaxReport) {
    std::array<pollfd, 2> either{{{.fd = report.get(), .events = POLLIN, .revents = 0},
                                  {.fd = Interrupts::fd(), .events = POLLIN, .revents = 0}}};
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return fail(kExitFailure, "the session does not say that it is ready");
    ::poll(either.data(), either.size(), static_cast<int>(left.count()));
    if (Interrupts::is_pending()) return fail(kExitInterrupted, "");
    if (either[0].revents == 0) continue;
    const ssize_t got = ::read(report.get(), piece.data(), piece.size());
    if (got <= 0) break;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
  return text;
}

/// What a report says: the server, or why there is no session.
Result<std::string> understood(const std::string& text) {
  const Result<json::value> parsed = parse_json(text);
  if (!parsed) return fail(kExitFailure, "the session has ended before its server was connected");
  const json::object& said = parsed->as_object();
  if (said.contains("server")) return std::string(text_at(said, "server"));
  return fail(static_cast<int>(said.at("code").as_int64()), std::string(text_at(said, "message")));
}

void wait_for_child(pid_t child) {
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

Result<std::string> start_session(const SessionFiles& files, SessionPlan plan) {
  std::optional<SessionClaim> claim;
  if (auto claimed = files.claim(plan.info.name)) {
    claim.emplace(*std::move(claimed));
  } else {
    return std::unexpected(std::move(claimed.error()));
  }
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return session_system_error("Cannot make a pipe");
  const Descriptor report(ends[0]);
  Descriptor told(ends[1]);
  const Duration patience = 2 * plan.upstream.connect_timeout + kReportTime;
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) become_session(plan, *claim, told);
  if (child < 0) return session_system_error("Cannot start a process");
  const std::string log = claim->log();
  claim.reset();
  told.close();
  auto text = read_report(report, patience);
  if (!text) {
    // It still cleans up after itself.
    ::kill(child, SIGTERM);
    return std::unexpected(std::move(text.error()));
  }
  auto server = understood(*text);
  if (server) return server;
  wait_for_child(child);
  Error error = std::move(server.error());
  if (::access(log.c_str(), F_OK) == 0) error.message.append("; its log is ").append(log);
  return std::unexpected(std::move(error));
}

Result<void> stop_session(const SessionFiles& files, const SessionInfo& session) {
  if (session.process == 0) {
    return fail(kExitFailure, session.name + " is about to begin; try again");
  }
  if (session.is_elsewhere) {
    return fail(kExitFailure, session.name +
                                  " runs in another container or on another machine, "
                                  "which has the same folder; stop it there");
  }
  const Descriptor process = open_pidfd(session.process);
  // It ends a moment after it has removed its files.
  const auto has_ended = [&process] {
    pollfd end{.fd = process.get(), .events = POLLIN, .revents = 0};
    return !process || ::poll(&end, 1, 0) == 1;
  };
  const auto is_gone_within = [&](std::chrono::nanoseconds time) -> Result<bool> {
    const auto until = std::chrono::steady_clock::now() + time;
    while (true) {
      const auto all = files.running();
      if (!all) return std::unexpected(all.error());
      const bool is_there = std::ranges::any_of(*all, [&](const SessionInfo& each) {
        return each.name == session.name && each.process == session.process;
      });
      if (!is_there && has_ended()) return true;
      if (std::chrono::steady_clock::now() >= until) return false;
      std::this_thread::sleep_for(kStopPoll);
    }
  };
  for (const auto& [signal, time] :
       {std::pair<int, std::chrono::nanoseconds>(SIGTERM, kStopTime),
        std::pair<int, std::chrono::nanoseconds>(SIGKILL, kKillTime)}) {
    if (::kill(session.process, signal) != 0 && errno != ESRCH) {
      return session_system_error("Cannot end process " + std::to_string(session.process));
    }
    const auto is_gone = is_gone_within(time);
    if (!is_gone) return std::unexpected(is_gone.error());
    if (*is_gone) return {};
  }
  return fail(kExitFailure,
              session.name + ": process " + std::to_string(session.process) + " does not end");
}

}  // namespace sluice

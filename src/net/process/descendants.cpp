#include "net/process/descendants.hpp"

#include <array>
#include <charconv>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <string_view>
#include <sys/syscall.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "net/process/pidfd.hpp"

namespace sluice {
namespace {

std::string read_whole(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t got = 0; file && (got = ::read(file.get(), buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return text;
}

bool has_mark(std::string_view environment, std::string_view mark) {
  for (std::size_t at = environment.find(mark); at != std::string_view::npos;
       at = environment.find(mark, at + 1)) {
    const std::size_t end = at + mark.size();
    const bool is_whole = (at == 0 || environment[at - 1] == '\0') &&
                          (end == environment.size() || environment[end] == '\0');
    if (is_whole) return true;
  }
  return false;
}

/// What the environment that a process was started with says.
enum class Marked : std::uint8_t {
  no,
  yes,
  not_yet,  // it is becoming another program, and has no environment until it is
};

/// When a process was started, in ticks since the system was (proc(5)); 0: it is not there.
std::uint64_t start_of(const std::string& process) {
  constexpr int kStart = 20;  // fields from the one behind the name, which may contain anything
  const std::string stat = read_whole(process + "/stat");
  std::size_t at = stat.rfind(')');
  for (int field = 0; field < kStart && at != std::string::npos; ++field) {
    at = stat.find(' ', at + 1);
  }
  std::uint64_t start = 0;
  if (at != std::string::npos) {
    std::from_chars(stat.data() + at + 1, stat.data() + stat.size(), start);
  }
  return start;
}

/// @param process its folder in /proc.
Marked look_for_mark(const std::string& process, std::string_view mark, std::uint64_t start) {
  // A process in the middle of exec has no arguments either, but it has a program. Threads of the
  // kernel and processes that have ended have none. The exec may end between two of these looks,
  // so only a process that is seen often is believed to have no environment.
  for (int looks = 0; looks < 20; ++looks) {
    const std::string environment = read_whole(process + "/environ");
    if (!environment.empty()) {
      return has_mark(environment, mark) ? Marked::yes : Marked::no;
    }
    std::array<char, 1> program{};
    if (::readlink((process + "/exe").c_str(), program.data(), program.size()) < 0) break;
    if (start_of(process) < start) break;
    if (read_whole(process + "/cmdline").empty()) return Marked::not_yet;
  }
  return Marked::no;
}

/// Kills the processes that have the mark. They are held by a descriptor while they are looked at,
/// so that no other process that gets the same id is killed.
/// @returns yes if there were any, else not_yet if another look may find some.
Marked kill_marked_once(std::string_view mark, std::uint64_t start) {
  Marked found = Marked::no;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    pid_t process = 0;
    const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), process);
    if (bad != std::errc() || end != name.data() + name.size() || process == ::getpid()) continue;
    const Descriptor held = open_pidfd(process);
    if (!held) continue;
    const Marked marked = look_for_mark(entry.path(), mark, start);
    if (marked == Marked::yes) {
      ::syscall(SYS_pidfd_send_signal, held.get(), SIGKILL, 0, 0);
      found = Marked::yes;
    } else if (marked == Marked::not_yet && found == Marked::no) {
      found = Marked::not_yet;
    }
  }
  return found;
}

}  // namespace

Descendants::Descendants(pid_t child, std::string mark)
    : mark_(std::move(mark)), start_(start_of("/proc/" + std::to_string(child))) {}

bool Descendants::kill() const {
  Marked found = Marked::yes;
  for (int rounds = 0; rounds < 10 && found == Marked::yes; ++rounds) {
    found = kill_marked_once(mark_, start_);
  }
  return found == Marked::not_yet;
}

}  // namespace sluice

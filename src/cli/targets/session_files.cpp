#include "cli/targets/session_files.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <limits>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

#include "cli/options/exit_code.hpp"
#include "cli/targets/target.hpp"
#include "client/authorization/file_lock.hpp"
#include "core/text/text.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

constexpr std::string_view kInfoSuffix = ".json";
constexpr std::size_t kMaxSessionInfo = std::size_t{64} << 10U;

/// Whoever cleans up after a session that was killed has its lock for a moment.
constexpr auto kClaimWait = std::chrono::milliseconds(200);
constexpr auto kClaimRetry = std::chrono::milliseconds(10);

std::unexpected<Error> cannot_use(const std::string& path, std::string_view why) {
  return fail(kExitFailure, path + ": " + std::string(why));
}

Descriptor open_session_file(const std::string& path, int flags) {
  return Descriptor(
      ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, S_IRUSR | S_IWUSR));
}

/// The lock of the whole file. It belongs to the open file, so forked processes have it as well
/// (fcntl(2), open file description locks).
bool try_lock(const Descriptor& file) {
  struct flock whole{};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return ::fcntl(file.get(), F_OFD_SETLK, &whole) == 0;
}

bool is_locked(const Descriptor& file) {
  struct flock whole{};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return ::fcntl(file.get(), F_OFD_GETLK, &whole) != 0 || whole.l_type != F_UNLCK;
}

/// Whether `path` still is this file.
bool is_at(const std::string& path, const Descriptor& file) {
  struct stat named{};
  struct stat opened{};
  return ::lstat(path.c_str(), &named) == 0 && ::fstat(file.get(), &opened) == 0 &&
         named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

std::string session_file_text(const Descriptor& file) {
  std::string text(kMaxSessionInfo, '\0');
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), 0);
  text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return text;
}

constexpr std::string_view kUnknownSpace = "unknown";

/// Where the numbers of processes are those that this one sees: the boot of the machine, and the
/// namespace (pid_namespaces(7)). Without /proc, kUnknownSpace, which may be anywhere.
std::string process_space() {
  std::string out(36, '\0');
  const Descriptor boot(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  const ssize_t got = ::read(boot.get(), out.data(), out.size());
  out.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  std::array<char, 64> name{};
  const ssize_t length = ::readlink("/proc/self/ns/pid", name.data(), name.size());
  if (got <= 0 || length <= 0) return std::string(kUnknownSpace);
  return out.append(" ").append(name.data(), static_cast<std::size_t>(length));
}

std::int64_t milliseconds_of(const SessionInfo& info) {
  const Duration timeout = info.request_timeout.value_or(Duration());
  return std::chrono::ceil<std::chrono::milliseconds>(timeout).count();
}

SessionInfo parse_info(std::string name, std::string_view text) {
  SessionInfo info{.name = std::move(name)};
  const Result<json::value> parsed = parse_json(text);
  // The session is just about to write it.
  if (!parsed || !parsed->is_object()) return info;
  const json::object& members = parsed->get_object();
  info.target = text_at(members, "target");
  info.server = text_at(members, "server");
  info.since = text_at(members, "since");
  const json::value* const timeout = members.if_contains("timeout_ms");
  if (timeout != nullptr && timeout->is_int64() && timeout->get_int64() > 0) {
    info.request_timeout = at_most_forever(std::chrono::milliseconds(timeout->get_int64()));
  }
  const json::value* const process = members.if_contains("pid");
  const std::int64_t number = process != nullptr && process->is_int64() ? process->get_int64() : 0;
  // Others would name groups of processes.
  if (number > 1 && number <= std::numeric_limits<pid_t>::max()) {
    info.process = static_cast<pid_t>(number);
    const std::string_view space = text_at(members, "process_space");
    info.is_elsewhere = !space.empty() && (space == kUnknownSpace || space != process_space());
  }
  return info;
}

std::string joined_names(const std::vector<SessionInfo>& sessions) {
  std::string out;
  for (const SessionInfo& each : sessions) {
    out.append(out.empty() ? "@" : ", @").append(each.name);
  }
  return out;
}

}  // namespace

bool is_session_name(std::string_view name) {
  const auto is_plain = [](char c) { return is_letter(c) || is_digit(c); };
  return !name.empty() && name.size() <= kMaxSessionName && is_plain(name.front()) &&
         std::ranges::all_of(
             name, [&](char c) { return is_plain(c) || c == '.' || c == '_' || c == '-'; });
}

bool is_session_word(std::string_view word) {
  return word.starts_with('@') && is_session_name(word.substr(1));
}

// --- one session --------------------------------------------------------------------------------

Result<void> SessionClaim::write(const SessionInfo& info) const {
  const std::string text = to_json(json::object{{"target", info.target},
                                                {"server", info.server},
                                                {"since", info.since},
                                                {"timeout_ms", milliseconds_of(info)},
                                                {"pid", std::int64_t{info.process}},
                                                {"process_space", process_space()}});
  const auto size = static_cast<ssize_t>(text.size());
  if (::pwrite(lock_.get(), text.data(), text.size(), 0) != size ||
      ::ftruncate(lock_.get(), size) != 0) {
    return cannot_use(base_ + std::string(kInfoSuffix), std::strerror(errno));
  }
  return {};
}

void SessionClaim::remove_files(bool keeps_log) const {
  // If somebody has removed them, others of this name may be those of the next session.
  if (!is_at(base_ + std::string(kInfoSuffix), lock_)) return;
  ::unlink(socket().c_str());
  if (!keeps_log) ::unlink(log().c_str());
  ::unlink((base_ + std::string(kInfoSuffix)).c_str());
}

// --- all of them --------------------------------------------------------------------------------

Result<bool> SessionFiles::is_usable() const {
  struct stat status{};
  // Whoever may write to the folder above can replace this one.
  const std::string above = std::filesystem::path(folder_).parent_path();
  if (::stat(above.c_str(), &status) == 0) {
    if (status.st_uid != ::geteuid() && status.st_uid != 0) {
      return cannot_use(above, "belongs to another user");
    }
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
      return cannot_use(above, "others may write to it; forbid that with chmod go-w");
    }
  }
  if (::lstat(folder_.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return cannot_use(folder_, std::strerror(errno));
  }
  if (!S_ISDIR(status.st_mode)) return cannot_use(folder_, "is not a folder; remove it");
  if (status.st_uid != ::geteuid()) return cannot_use(folder_, "belongs to another user");
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return cannot_use(folder_, "others may use it; forbid that with chmod go-rwx");
  }
  return true;
}

std::vector<std::string> SessionFiles::names() const {
  std::vector<std::string> out;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, failed)) {
    const std::filesystem::path& path = entry.path();
    std::string name = path.stem();
    if (path.extension() == kInfoSuffix && is_session_name(name)) out.push_back(std::move(name));
  }
  std::ranges::sort(out);
  return out;
}

std::optional<SessionInfo> SessionFiles::look(const std::string& name) const {
  const std::string path = base(name) + std::string(kInfoSuffix);
  Descriptor file = open_session_file(path, 0);
  if (!file) return std::nullopt;
  if (is_locked(file)) return parse_info(name, session_file_text(file));
  if (try_lock(file) && is_at(path, file)) {
    SessionClaim(base(name), std::move(file)).remove_files(true);
  }
  return std::nullopt;
}

Result<SessionClaim> SessionFiles::claim(const std::string& name) const {
  if (!is_session_name(name)) {
    return fail(kExitUsage, "\"" + name + "\" is no name of a session: it has 1 to " +
                                std::to_string(kMaxSessionName) +
                                " letters, digits, '.', '_' and '-', and begins with a letter or "
                                "a digit; give another --name");
  }
  const std::string path = base(name) + std::string(kInfoSuffix);
  if (socket(name).size() > kMaxSocketPath) {
    return fail(kExitUsage, socket(name) + ": the path of a socket has at most " +
                                std::to_string(kMaxSocketPath) +
                                " bytes; give a shorter --name, or set XDG_RUNTIME_DIR");
  }
  // A folder that is not to be used gets nothing in it.
  if (auto usable = is_usable(); !usable) return std::unexpected(std::move(usable.error()));
  make_private_folder(path);
  const auto others = running();
  if (!others) return std::unexpected(others.error());
  if (others->size() >= kMaxSessions) {
    return fail(kExitUsage, "there are " + std::to_string(kMaxSessions) +
                                " sessions; end one with `sluice session stop`");
  }
  const auto give_up = std::chrono::steady_clock::now() + kClaimWait;
  while (true) {
    Descriptor file = open_session_file(path, O_CREAT);
    if (!file) return cannot_use(path, std::strerror(errno));
    // It may have been removed meanwhile by whoever had it locked.
    if (try_lock(file) && is_at(path, file)) {
      SessionClaim claim(base(name), std::move(file));
      if (auto empty = claim.write({.name = name}); !empty) return std::unexpected(empty.error());
      return claim;
    }
    if (std::chrono::steady_clock::now() >= give_up) {
      return fail(kExitUsage, "there is a session " + name + " already: use it as @" + name +
                                  ", end it with `sluice session stop " + name +
                                  "`, or give another --name");
    }
    std::this_thread::sleep_for(kClaimRetry);
  }
}

Result<std::vector<SessionInfo>> SessionFiles::running() const {
  std::vector<SessionInfo> out;
  const auto usable = is_usable();
  if (!usable) return std::unexpected(usable.error());
  if (!*usable) return out;
  for (const std::string& name : names()) {
    if (auto info = look(name)) out.push_back(*std::move(info));
  }
  return out;
}

Result<SessionInfo> SessionFiles::find(const std::string& name) const {
  auto sessions = running();
  if (!sessions) return std::unexpected(std::move(sessions.error()));
  const auto found = std::ranges::find(*sessions, name, &SessionInfo::name);
  if (found != sessions->end()) return *std::move(found);
  std::string message = "there is no session " + name;
  if (!sessions->empty()) message.append("; there are ").append(joined_names(*sessions));
  const std::string log = base(name) + ".log";
  if (::access(log.c_str(), F_OK) == 0) message.append("; the log of the last one is ").append(log);
  return fail(kExitUsage, message + "; begin one with `sluice session start`");
}

std::string sessions_folder(const PlaceSources& sources) {
  constexpr std::string_view kFolder = "/sluice/sessions";
  for (const char* const variable : {"XDG_RUNTIME_DIR", "XDG_STATE_HOME"}) {
    // A relative path is to be ignored (XDG Base Directory Specification).
    const auto given = sources.environment(variable);
    if (given && given->starts_with('/')) return *given + std::string(kFolder);
  }
  if (sources.home.empty()) return {};
  return sources.home + "/.local/state" + std::string(kFolder);
}

}  // namespace sluice

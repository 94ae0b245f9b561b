#include "cli/targets/config_reader.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <grp.h>
#include <pwd.h>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include "cli/options/exit_code.hpp"
#include "net/loop/descriptor.hpp"

namespace sluice {
namespace {

constexpr std::size_t kMaxEntry = 16U << 10U;  // of a line of the databases of users and groups

std::optional<std::string> user_name() {
  std::array<char, kMaxEntry> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  ::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found);
  return found == nullptr ? std::nullopt : std::optional<std::string>(found->pw_name);
}

/// Whether nobody but the user is in the group: its name is the user's, as systems with a group for
/// each user have it, and it has no other members.
bool is_private_group(gid_t group) {
  if (group == 0) return true;  // root's, who may write everything
  const auto user = user_name();
  std::array<char, kMaxEntry> buffer{};
  ::group entry{};
  ::group* found = nullptr;
  ::getgrgid_r(group, &entry, buffer.data(), buffer.size(), &found);
  if (!user || found == nullptr || *user != found->gr_name) return false;
  for (char** member = found->gr_mem; *member != nullptr; ++member) {
    if (*user != *member) return false;
  }
  return true;
}

/// Why what `path` names may be somebody else's; empty if it may not. The path of a file that is
/// there ends no chain of reasons, so the caller checks the folders as well.
std::string distrust_of(const std::string& path, const struct stat& status) {
  const bool is_mine = status.st_uid == ::geteuid() || status.st_uid == 0;
  if (!is_mine) return path + " belongs to another user; make it yours with chown";
  if (S_ISLNK(status.st_mode)) return {};  // its target counts, and the folder that it is in
  if (S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX) != 0) return {};
  const bool by_group = (status.st_mode & S_IWGRP) != 0 && !is_private_group(status.st_gid);
  if ((status.st_mode & S_IWOTH) != 0 || by_group) {
    return "others can write " + path + "; forbid it with chmod go-w";
  }
  return {};
}

/// The same for `path` and all folders above it.
std::string distrust_of_path(const std::filesystem::path& path) {
  for (std::filesystem::path at = path;; at = at.parent_path()) {
    struct stat status{};
    if (::lstat(at.c_str(), &status) != 0) return at.string() + ": " + std::strerror(errno);
    if (auto reason = distrust_of(at.string(), status); !reason.empty()) return reason;
    if (at == at.parent_path()) return {};
  }
}

std::string distrust_of_file(const std::string& path) {
  std::error_code failed;
  const auto absolute = std::filesystem::absolute(path, failed).lexically_normal();
  if (failed) return path + ": " + failed.message();
  const auto real = std::filesystem::canonical(path, failed);
  if (failed) return path + ": " + failed.message();
  auto reason = distrust_of_path(absolute);
  if (reason.empty() && real != absolute) reason = distrust_of_path(real);
  return reason;
}

std::unexpected<Error> unreadable(const std::string& path, std::string_view why) {
  return fail(kExitUsage, path + ": " + std::string(why));
}

}  // namespace

Result<std::optional<ReadConfig>> read_config(const std::string& path, std::size_t limit) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
  if (!file) return unreadable(path, std::strerror(errno));
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return unreadable(path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return unreadable(path, "is not a regular file");
  ReadConfig out;
  constexpr std::size_t kPiece = std::size_t{64} << 10U;
  for (std::size_t size = 0;;) {
    out.text.resize(size + kPiece);
    const ssize_t got = ::read(file.get(), out.text.data() + size, kPiece);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return unreadable(path, std::strerror(errno));
    size += static_cast<std::size_t>(got);
    out.text.resize(size);
    if (size > limit) {
      return unreadable(path, "is larger than " + std::to_string(limit) + " bytes");
    }
    if (got == 0) break;
  }
  out.distrust = distrust_of(path, status);
  if (out.distrust.empty()) out.distrust = distrust_of_file(path);
  return out;
}

}  // namespace sluice

#include "engine/methods/model_folder.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <linux/openat2.h>
#include <memory>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#include "net/http/status_codes.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

constexpr std::size_t kMaxPath = 1024;
constexpr int kMaxTries = 16;

std::unexpected<Error> refuse_path(std::string_view what, const std::string& why) {
  return fail(kInvalidParams, "Invalid params: " + std::string(what) + " " + why);
}

Result<void> check_path(std::string_view what, std::string_view path) {
  if (path.empty() || path.size() > kMaxPath || path.contains('\0')) {
    return refuse_path(what, "must be a path of 1 to " + std::to_string(kMaxPath) + " bytes");
  }
  if (path.front() == '/') {
    return refuse_path(what, "must be relative to the folder of --model-dir");
  }
  for (std::string_view rest = path; !rest.empty();) {
    const std::size_t end = std::min(rest.find('/'), rest.size());
    if (rest.substr(0, end) == "..") return refuse_path(what, "must have no \"..\"");
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {};
}

/// Opens what is below `folder`, whatever it is, without waiting for it.
Descriptor open_below(const Descriptor& folder, const std::string& path, int flags) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  long got = ::syscall(SYS_openat2, folder.get(), path.c_str(), &how, sizeof how);
  // The kernel gives up where folders are being renamed.
  for (int tries = 0; got < 0 && (errno == EAGAIN || errno == EINTR) && tries < kMaxTries;
       ++tries) {
    got = ::syscall(SYS_openat2, folder.get(), path.c_str(), &how, sizeof how);
  }
  return Descriptor(static_cast<int>(got));
}

/// What errno says of a path, in the words of its caller.
std::unexpected<Error> cannot_open(std::string_view what, const std::string& path) {
  switch (errno) {
    case ENOENT:
    case ENOTDIR:
      return refuse_path(what, "names no file: there is no " + path);
    case EXDEV:
    case ELOOP:
      return refuse_path(what, "leads out of the folder of --model-dir: " + path);
    case ENXIO:
      return refuse_path(what, "must name a file, and " + path + " is none");
    default:
      return refuse_path(what, "cannot be opened: " + path + ": " + std::strerror(errno));
  }
}

/// The path of what a descriptor refers to, with no links in it; empty: it has none.
std::string resolved_path(const Descriptor& descriptor) {
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor.get());
  std::array<char, PATH_MAX> path{};
  const ssize_t length = ::readlink(link.c_str(), path.data(), path.size());
  return length <= 0 || path.front() != '/'
             ? std::string()
             : std::string(path.data(), static_cast<std::size_t>(length));
}

}  // namespace

Result<ModelFolder> ModelFolder::open(const std::string& path) {
  Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return fail(kNotFound, path + ": " + std::strerror(errno));
  return ModelFolder(std::move(folder));
}

Result<NamedFile> ModelFolder::find(std::string_view what, const std::string& path) const {
  if (const Result<void> checked = check_path(what, path); !checked) {
    return std::unexpected(checked.error());
  }
  Descriptor file = open_below(folder_, path, O_RDONLY);
  if (!file) return cannot_open(what, path);
  struct stat about{};
  if (::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode)) {
    return refuse_path(what, "must name a file, and " + path + " is none");
  }
  std::string found = resolved_path(file);
  if (found.empty()) return refuse_path(what, "cannot be opened: " + path);
  return NamedFile{.path = std::move(found),
                   .descriptor = std::make_shared<const Descriptor>(std::move(file))};
}

Result<std::string> ModelFolder::place_for(std::string_view what, const std::string& path) const {
  if (const Result<void> checked = check_path(what, path); !checked) {
    return std::unexpected(checked.error());
  }
  const std::size_t slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (name.empty() || name == ".") return refuse_path(what, "must end with the name of a file");
  const Descriptor folder = open_below(
      folder_, slash == std::string::npos ? "." : path.substr(0, slash), O_RDONLY | O_DIRECTORY);
  if (!folder) return cannot_open(what, path);
  struct stat about{};
  if (::fstatat(folder.get(), name.c_str(), &about, AT_SYMLINK_NOFOLLOW) == 0) {
    return refuse_path(what, "must name a new file, and there is " + path);
  }
  if (errno != ENOENT) return cannot_open(what, path);
  const std::string found = resolved_path(folder);
  if (found.empty()) return refuse_path(what, "cannot be used: " + path);
  return found + "/" + name;
}

}  // namespace sluice

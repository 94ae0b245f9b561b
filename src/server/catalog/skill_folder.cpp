#include "server/catalog/skill_folder.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "net/loop/descriptor.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

/// How deep folders may be nested, including those above the skills.
constexpr int kMaxFolders = 16;

std::unexpected<Error> unreadable(const std::filesystem::path& path, const std::string& why) {
  return fail(kInvalidParams, "Skill '" + path.string() + "': " + why);
}

std::unexpected<Error> no_file(const std::filesystem::path& path) {
  return unreadable(path, "only files and folders may be in a skill");
}

/// An open file or folder. Its descriptor refers to the same object even if something else takes
/// its name.
struct Opened {
  Descriptor descriptor;
  std::filesystem::path path;  // its path when it was opened
};

/// Opens `name` in `folder`. Does not follow links, does not wait for the writer of a FIFO, and
/// does not make a terminal the controlling one.
Result<Opened> open_in(const Opened& folder, const std::string& name) {
  std::filesystem::path path = folder.path / name;
  Descriptor descriptor(::openat(folder.descriptor.get(), name.c_str(),
                                 O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (descriptor) return Opened{std::move(descriptor), std::move(path)};
  if (errno == ELOOP || errno == ENXIO) return no_file(path);
  return unreadable(path, std::strerror(errno));
}

/// The sorted names in a folder, without those that begin with a dot.
Result<std::vector<std::string>> names_in(const Opened& folder) {
  const int again = ::openat(folder.descriptor.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(again < 0 ? nullptr : ::fdopendir(again),
                                                    &::closedir);
  if (listing == nullptr) return unreadable(folder.path, std::strerror(errno));
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody else uses this listing
    const dirent* const entry = ::readdir(listing.get());
    if (entry == nullptr) break;
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  if (errno != 0) return unreadable(folder.path, std::strerror(errno));
  std::ranges::sort(names);
  return names;
}

Result<std::string> read_file(const Opened& file, std::size_t limit) {
  std::string content;
  std::array<char, 65536> block;
  for (;;) {
    const ssize_t size = ::read(file.descriptor.get(), block.data(), block.size());
    if (size < 0) return unreadable(file.path, std::strerror(errno));
    if (size == 0) return content;
    content.append(block.data(), static_cast<std::size_t>(size));
    if (content.size() > limit) {
      return unreadable(file.path, "this is more than a skill may have");
    }
  }
}

/// Reads the files of one skill, at `root`, into `files`.
Result<void> collect_files(const std::filesystem::path& root, const Opened& folder, int depth,
                           std::size_t& bytes_left, std::vector<Skill::Source>& files) {
  if (depth > kMaxFolders) return unreadable(folder.path, "folders are nested too deeply");
  const auto names = names_in(folder);
  if (!names) return std::unexpected(names.error());
  for (const std::string& name : *names) {
    const Result<Opened> found = open_in(folder, name);
    if (!found) return std::unexpected(found.error());
    struct stat status{};
    if (::fstat(found->descriptor.get(), &status) != 0) {
      return unreadable(found->path, std::strerror(errno));
    }
    if (S_ISDIR(status.st_mode)) {
      Result<void> below = collect_files(root, *found, depth + 1, bytes_left, files);
      if (!below) return below;
      continue;
    }
    if (!S_ISREG(status.st_mode)) return no_file(found->path);
    if (files.size() == Skill::kMaxFiles) return unreadable(root, "there are more than 512 files");
    Result<std::string> content = read_file(*found, bytes_left);
    if (!content) return std::unexpected(std::move(content.error()));
    bytes_left -= content->size();
    files.push_back({found->path.lexically_relative(root).generic_string(), std::move(*content)});
  }
  return {};
}

Result<void> collect_skills(const std::filesystem::path& root, const Opened& folder, int depth,
                            std::vector<Skill>& skills) {
  if (depth > kMaxFolders) return unreadable(folder.path, "folders are nested too deeply");
  const auto names = names_in(folder);
  if (!names) return std::unexpected(names.error());
  for (const std::string& name : *names) {
    Opened found{{}, folder.path / name};
    found.descriptor = Descriptor(::openat(folder.descriptor.get(), name.c_str(),
                                           O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!found.descriptor) {
      if (errno == ENOTDIR || errno == ELOOP) continue;  // a file, or a link
      return unreadable(found.path, std::strerror(errno));
    }
    struct stat manifest{};
    if (::fstatat(found.descriptor.get(), Skill::kManifest.data(), &manifest,
                  AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno != ENOENT) return unreadable(found.path, std::strerror(errno));
      if (Result<void> below = collect_skills(root, found, depth + 1, skills); !below) return below;
      continue;
    }
    std::vector<Skill::Source> files;
    std::size_t bytes_left = Skill::kMaxBytes;
    if (Result<void> read = collect_files(found.path, found, depth, bytes_left, files); !read) {
      return read;
    }
    Result<Skill> skill =
        Skill::make(found.path.lexically_relative(root).generic_string(), std::move(files));
    if (!skill) return std::unexpected(std::move(skill.error()));
    skills.push_back(std::move(*skill));
  }
  return {};
}

}  // namespace

Result<std::vector<Skill>> read_skills(const std::filesystem::path& directory) {
  const Opened root{Descriptor(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
                    directory};
  if (!root.descriptor) return unreadable(directory, std::strerror(errno));
  std::vector<Skill> skills;
  if (Result<void> read = collect_skills(directory, root, 0, skills); !read) {
    return std::unexpected(std::move(read.error()));
  }
  return skills;
}

}  // namespace sluice

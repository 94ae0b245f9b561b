#include "engine/rkllm/prompt_cache/prompt_cache_folder.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <system_error>
#include <unistd.h>

#include "client/authorization/file_lock.hpp"
#include "core/crypto/digest.hpp"
#include "core/log/log.hpp"
#include "core/text/utf8.hpp"
#include "json/json.hpp"
#include "net/http/status_codes.hpp"
#include "sluice/schema.hpp"

namespace sluice::rkllm {
namespace {

/// What the index has.
struct CacheIndex {
  std::int32_t version = 0;
  std::vector<CacheEntry> files;
};

constexpr std::int32_t kIndexVersion = 1;
constexpr std::size_t kMaxIndex = std::size_t{4} << 20U;
constexpr std::string_view kCacheEnd = ".cache";
constexpr std::string_view kUnfinishedEnd = ".new";
constexpr std::size_t kDigits = 64;  // of a digest
/// What a byte of a prompt takes in a file, until one has told: 128 KiB for a token of four bytes.
constexpr std::uint64_t kFirstGuess = std::uint64_t{32} << 10U;
/// So many saves in a row fail before no more are tried: the model may have no prompt caches, or
/// writing them may crash the runtime.
constexpr std::uint32_t kMostFailures = 2;

bool is_digest(std::string_view text) {
  return text.size() == kDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// The digest of texts, which is another one if a text ends elsewhere.
Sha256 digest_of_parts(std::initializer_list<std::string_view> parts) {
  Sha256 out;
  for (const std::string_view part : parts) {
    out.add(std::to_string(part.size()));
    out.add(" ");
    out.add(part);
  }
  return out;
}

std::string scope_of(const CachedPrompt& prompt) {
  return digest_of_parts({prompt.model, prompt.owner}).hex();
}

/// Whether the tokens of `text` surely begin with those of its first `length` bytes, so that no
/// token goes over their end: words and blanks are not joined over these.
bool ends_between_tokens(std::string_view text, std::size_t length) {
  if (length == text.size()) return true;
  const std::string_view start = text.substr(0, length);
  if (start.ends_with("|>") || start.ends_with("｜>")) return true;  // a control token
  constexpr std::string_view kWhite = " \t\r\n";
  return start.ends_with('\n') && !kWhite.contains(text[length]);
}

/// Nothing: it is not a regular file of ours.
std::optional<std::uint64_t> size_of(const Descriptor& file) {
  struct stat status{};
  const bool is_ours = file && ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) &&
                       status.st_uid == ::geteuid();
  if (!is_ours) return std::nullopt;
  return static_cast<std::uint64_t>(status.st_size);
}

Descriptor open_cache_file(const std::string& path) {
  return Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
}

/// Empty: it cannot be read.
std::string digest_of_file(const Descriptor& file) {
  Sha256 digest;
  std::string piece(std::size_t{1} << 20U, '\0');
  while (true) {
    const ssize_t got = ::read(file.get(), piece.data(), piece.size());
    if (got == 0) return digest.hex();
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return {};
    digest.add({piece.data(), static_cast<std::size_t>(got)});
  }
}

/// What the disk has room for.
std::uint64_t free_bytes_at(const std::string& path) {
  struct statvfs disk{};
  if (::statvfs(path.c_str(), &disk) != 0) return 0;
  return static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize;
}

std::unexpected<Error> refuse_folder(int code, const std::string& path, std::string_view why) {
  return fail(code, path + ": " + std::string(why));
}

/// Error 403: others could change what is in the folder.
Result<void> check_private(const std::string& path) {
  struct stat status{};
  // Whoever may write to the folder above can replace this one, unless it is sticky.
  const std::string above = std::filesystem::path(path).parent_path();
  if (::stat(above.c_str(), &status) != 0) return refuse_folder(500, above, std::strerror(errno));
  if (status.st_uid != ::geteuid() && status.st_uid != 0) {
    return refuse_folder(kForbidden, above, "belongs to another user");
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (status.st_mode & S_ISVTX) == 0) {
    return refuse_folder(kForbidden, above, "others may write to it; forbid that with chmod go-w");
  }
  if (::stat(path.c_str(), &status) != 0) return refuse_folder(500, path, std::strerror(errno));
  if (!S_ISDIR(status.st_mode)) return refuse_folder(kForbidden, path, "is not a folder");
  if (status.st_uid != ::geteuid()) {
    return refuse_folder(kForbidden, path, "belongs to another user");
  }
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return refuse_folder(kForbidden, path, "others may use it; forbid that with chmod go-rwx");
  }
  return {};
}

}  // namespace

// --- the folder ---------------------------------------------------------------------------------

Result<PromptCacheFolder> PromptCacheFolder::open(const std::string& path,
                                                  const PromptCacheLimits& limits) {
  std::error_code error;
  const std::filesystem::path given = std::filesystem::absolute(path, error);
  make_private_folder((given / "lock").string());
  const std::string folder = std::filesystem::canonical(given, error).string();
  if (error) return refuse_folder(kInternalServerError, path, error.message());
  if (!is_valid_utf8(folder)) {
    return refuse_folder(kUnprocessableContent, valid_utf8(folder), "is a path that is not UTF-8");
  }
  if (auto checked = check_private(folder); !checked) {
    return std::unexpected(std::move(checked.error()));
  }
  Descriptor lock(::open((folder + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                         S_IRUSR | S_IWUSR));
  if (!lock) return refuse_folder(kInternalServerError, folder + "/lock", std::strerror(errno));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return refuse_folder(kConflict, folder,
                         "another process keeps its prompt caches there; each needs a folder of "
                         "its own");
  }
  PromptCacheFolder out(folder, std::move(lock), limits);
  out.read_index();
  out.remove_strays();
  out.make_room(0, 0);
  return out;
}

PromptCacheFolder::~PromptCacheFolder() {
  if (lock_ && is_changed_) write_index();
}

std::string PromptCacheFolder::file_of(std::string_view name) const {
  return path_ + "/" + std::string(name) + std::string(kCacheEnd);
}

void PromptCacheFolder::read_index() {
  const std::string path = path_ + "/index.json";
  const Descriptor file = open_cache_file(path);
  if (!file && errno == ENOENT) return;  // there is none yet
  std::string text;
  if (const std::optional<std::uint64_t> size = size_of(file); size && *size <= kMaxIndex) {
    text.resize(static_cast<std::size_t>(*size));
    const ssize_t got = ::read(file.get(), text.data(), text.size());
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  }
  std::optional<CacheIndex> index;
  if (const Result<json::value> parsed = parse_json(text)) {
    if (auto decoded = decode<CacheIndex>(*parsed, "index")) index = *std::move(decoded);
  }
  if (!index || index->version != kIndexVersion) {
    log_warning("the index of the prompt caches cannot be read, so all of them are removed",
                {{"file", std::string_view(path)}});
    return;
  }
  std::set<std::string_view> names;
  for (const CacheEntry& each : index->files) {
    const bool is_well_formed =
        is_digest(each.name) && is_digest(each.scope) && is_digest(each.digest) && each.length > 0;
    if (!is_well_formed || size_of(open_cache_file(file_of(each.name))) != each.bytes ||
        !names.insert(each.name).second) {
      is_changed_ = true;
      continue;
    }
    entries_.push_back(each);
    bytes_ += each.bytes;
    per_byte_ = std::max(per_byte_, each.bytes / each.length + 1);
  }
}

void PromptCacheFolder::write_index() {
  is_changed_ = false;
  const std::string path = path_ + "/index.json";
  const std::string unfinished = path + std::string(kUnfinishedEnd);
  const std::string text = to_json(encode(CacheIndex{.version = kIndexVersion, .files = entries_}));
  std::ofstream file(unfinished, std::ios::binary | std::ios::trunc);
  file << text << '\n';
  file.close();
  ::chmod(unfinished.c_str(), S_IRUSR | S_IWUSR);
  if (file && ::rename(unfinished.c_str(), path.c_str()) == 0) return;
  log_warning("the index of the prompt caches cannot be written",
              {{"file", std::string_view(path)}});
}

void PromptCacheFolder::remove_strays() const {
  std::set<std::string> known;
  for (const CacheEntry& each : entries_) known.insert(each.name + std::string(kCacheEnd));
  std::vector<std::filesystem::path> strays;
  std::error_code failed;
  for (const auto& each : std::filesystem::directory_iterator(path_, failed)) {
    const std::string name = each.path().filename().string();
    const std::string_view end = std::string_view(name).substr(std::min(kDigits, name.size()));
    const bool is_ours =
        is_digest(name.substr(0, kDigits)) && (end == kCacheEnd || end.ends_with(kUnfinishedEnd));
    if (is_ours && !known.contains(name)) strays.push_back(each.path());
  }
  for (const auto& each : strays) std::filesystem::remove(each, failed);
}

// --- entries ------------------------------------------------------------------------------------

PromptCacheFolder::Entries::iterator PromptCacheFolder::find(std::string_view name) {
  return std::ranges::find(entries_, name, &CacheEntry::name);
}

bool PromptCacheFolder::is_whole(const CacheEntry& entry) const {
  const Descriptor file = open_cache_file(file_of(entry.name));
  return size_of(file) == entry.bytes && digest_of_file(file) == entry.digest;
}

std::string PromptCacheFolder::longest(const CachedPrompt& prompt, const std::string& scope) const {
  const std::string_view text = prompt.text;
  std::multimap<std::uint64_t, std::string_view> names;  // by the lengths of their prompts
  for (const CacheEntry& each : entries_) {
    const bool may_fit = each.scope == scope && each.length <= text.size() &&
                         (!prompt.is_closed || each.length == text.size()) &&
                         ends_between_tokens(text, each.length);
    if (may_fit) names.emplace(each.length, each.name);
  }
  std::string_view out;
  Sha256 digest = digest_of_parts({scope});
  std::size_t read = 0;
  for (const auto& [length, name] : names) {
    digest.add(text.substr(read, length - read));
    read = length;
    if (digest.hex() == name) out = name;
  }
  return std::string(out);
}

bool PromptCacheFolder::make_room(std::uint64_t bytes, std::size_t spared) {
  const auto fits = [&] {
    return bytes_ + reserved_ + bytes <= limits_.bytes && entries_.size() < limits_.files;
  };
  while (!fits() && entries_.size() > spared) remove(entries_.begin());
  return fits();
}

void PromptCacheFolder::remove(Entries::iterator entry) {
  ::unlink(file_of(entry->name).c_str());
  bytes_ -= entry->bytes;
  entries_.erase(entry);
  is_changed_ = true;
}

void PromptCacheFolder::forget(std::string_view name, std::string_view why) {
  const auto entry = find(name);
  if (entry == entries_.end()) return;
  log_warning("a prompt cache is removed", {{"why", why}, {"file", name}});
  remove(entry);
}

// --- runs ---------------------------------------------------------------------------------------

CachePlan PromptCacheFolder::plan(const CachedPrompt& prompt) {
  CachePlan out;
  std::string scope = scope_of(prompt);
  const std::uint64_t worth_loading = prompt.live + limits_.least_prompt;
  auto entry = find(longest(prompt, scope));
  while (entry != entries_.end() && entry->length >= worth_loading && !is_whole(*entry)) {
    forget(std::string(entry->name), "it is not as it was written");
    entry = find(longest(prompt, scope));
  }
  std::uint64_t covered = 0;
  if (entry != entries_.end()) {
    covered = entry->length;
    std::rotate(entry, entry + 1, entries_.end());
    is_changed_ = true;
    const CacheEntry& last = entries_.back();
    if (covered >= worth_loading) {
      out.load = {.path = file_of(last.name), .name = last.name, .tokens = last.tokens};
    }
  }
  if (prompt.text.size() - covered >= limits_.least_prompt) {
    out.save = plan_save(prompt, std::move(scope), covered == 0 ? 0 : 1);
  }
  return out;
}

std::optional<CachePlan::Save> PromptCacheFolder::plan_save(const CachedPrompt& prompt,
                                                            std::string scope, std::size_t spared) {
  if (failures_ >= kMostFailures) return std::nullopt;
  const std::uint64_t length = prompt.text.size();
  const std::uint64_t known = length * per_byte_;
  if (known > limits_.bytes) return std::nullopt;
  const std::uint64_t reserved =
      per_byte_ == 0 ? std::min(length * kFirstGuess, limits_.bytes) : known;
  if (free_bytes_at(path_) < reserved + limits_.free_bytes) {
    log_warning("a prompt is not saved, as the disk is full",
                {{"folder", std::string_view(path_)}});
    return std::nullopt;
  }
  if (!make_room(reserved, spared)) return std::nullopt;
  reserved_ += reserved;
  Sha256 digest = digest_of_parts({scope});
  digest.add(prompt.text);
  std::string name = digest.hex();
  std::string path =
      path_ + "/" + name + "." + std::to_string(++saves_) + std::string(kUnfinishedEnd);
  return CachePlan::Save{.path = std::move(path),
                         .name = std::move(name),
                         .scope = std::move(scope),
                         .length = prompt.text.size(),
                         .reserved = reserved};
}

void PromptCacheFolder::release(const CachePlan::Save& save) {
  reserved_ -= save.reserved;
}

void PromptCacheFolder::keep(const CachePlan::Save& save, std::uint32_t tokens) {
  release(save);
  const Descriptor file = open_cache_file(save.path);
  const std::uint64_t bytes = size_of(file).value_or(0);
  if (bytes == 0) {
    ::unlink(save.path.c_str());
    return count_failure("the runtime has written none");
  }
  per_byte_ = std::max(per_byte_, bytes / save.length + 1);
  const auto drop = [&save](std::string_view why) {
    ::unlink(save.path.c_str());
    log_warning("a prompt cache is not kept", {{"why", why}});
  };
  // Another slot may have saved the same prompt.
  if (find(save.name) != entries_.end()) {
    ::unlink(save.path.c_str());
    return;
  }
  if (free_bytes_at(path_) < limits_.free_bytes) return drop("the disk is full");
  if (bytes > limits_.bytes) return drop("it alone is larger than all may be together");
  std::string digest = digest_of_file(file);
  if (digest.empty() || ::fchmod(file.get(), S_IRUSR | S_IWUSR) != 0) {
    return drop("it cannot be read");
  }
  if (!make_room(bytes, 0)) return drop("others that are being written need the room");
  if (::rename(save.path.c_str(), file_of(save.name).c_str()) != 0) {
    return drop("it cannot be renamed");
  }
  failures_ = 0;
  bytes_ += bytes;
  entries_.push_back({.name = save.name,
                      .scope = save.scope,
                      .length = save.length,
                      .bytes = bytes,
                      .digest = std::move(digest),
                      .tokens = tokens});
  write_index();
}

void PromptCacheFolder::discard(const CachePlan::Save& save, bool has_died) {
  release(save);
  ::unlink(save.path.c_str());
  if (has_died) count_failure("the process of the model has died meanwhile");
}

void PromptCacheFolder::count_failure(std::string_view why) {
  ++failures_;
  log_warning("a prompt cache was not written", {{"why", why}});
  if (failures_ == kMostFailures) {
    log_error("no more prompt caches are written until the server is started again");
  }
}

}  // namespace sluice::rkllm

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "net/loop/descriptor.hpp"

namespace sluice::rkllm {

struct PromptCacheLimits {
  std::uint64_t bytes = std::uint64_t{1} << 30U;  // of all files
  std::size_t files = 1000;
  /// The bytes of a prompt that are worth a file: fewer are not written, nor loaded.
  std::size_t least_prompt = 2048;
  /// The disk keeps so much room. A file that leaves less may be cut off.
  std::uint64_t free_bytes = std::uint64_t{16} << 20U;
};

/// The prompt of a run, as its caches know it.
struct CachedPrompt {
  std::string model;  // says everything that a cache depends on besides the prompt
  std::string owner;  // the principal
  std::string text;
  /// The runtime puts texts of its own behind the prompt, so a longer prompt does not begin with
  /// the same tokens.
  bool is_closed = false;
  std::size_t live = 0;  // so many bytes of the text are in the memory of the runtime
};

/// What a run does with the files.
struct CachePlan {
  struct Load {
    std::string path;
    std::string name;          // of its entry
    std::uint32_t tokens = 0;  // those it has; 0: nobody knows
  };
  struct Save {
    std::string path;  // of a file that there is not yet
    std::string name;
    std::string scope;
    std::size_t length = 0;      // of the prompt, in bytes
    std::uint64_t reserved = 0;  // bytes that are kept free for it
  };
  std::optional<Load> load = {};
  std::optional<Save> save = {};
};

/// A file of a folder of them, as its index has it.
struct CacheEntry {
  std::string name;
  std::string scope;         // of the model and the principal
  std::uint64_t length = 0;  // of the prompt, in bytes
  std::uint64_t bytes = 0;   // of the file
  std::string digest;
  std::uint32_t tokens = 0;  // of the prompt; 0: nobody knows
};

/// A folder of prompt caches: files that a runtime has written, with what it has computed of a
/// prompt. Each belongs to a model and a principal, and is found by the digest of the three, which
/// is its name. Those used least recently are removed so that the folder stays within its limits.
/// An index, `index.json`, has the digest of each file; a file that is not as it was is removed and
/// not loaded. Files that are not named as ours are left alone.
///
/// Its functions read and write files, so they may take seconds. One thread at a time. What goes
/// wrong is logged: a run goes on without caches.
class PromptCacheFolder {
 public:
  /// Makes the folder if it is missing, and removes what the index does not have. Errors: 403, it
  /// is not ours alone; 409, another process uses it; 422, its path is not UTF-8; 500, the system
  /// refuses.
  static Result<PromptCacheFolder> open(const std::string& path, const PromptCacheLimits& limits);
  PromptCacheFolder(PromptCacheFolder&&) = default;
  PromptCacheFolder& operator=(PromptCacheFolder&&) = delete;
  /// Writes down which files were used last.
  ~PromptCacheFolder();

  /// The longest cache that `prompt` begins with, if it spares enough, and where to save it, if
  /// that does. Each save ends with keep() or discard().
  CachePlan plan(const CachedPrompt& prompt);
  /// The runtime has written the file. `tokens`: of the prompt; 0: nobody knows.
  void keep(const CachePlan::Save& save, std::uint32_t tokens);
  /// The file is of no use. `has_died`: the process that was to write it died.
  void discard(const CachePlan::Save& save, bool has_died);
  /// The runtime does not take this one, and says why.
  void forget(std::string_view name, std::string_view why);

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] const PromptCacheLimits& limits() const { return limits_; }

 private:
  using Entries = std::vector<CacheEntry>;

  PromptCacheFolder(std::string path, Descriptor lock, const PromptCacheLimits& limits)
      : path_(std::move(path)), lock_(std::move(lock)), limits_(limits) {}

  void read_index();
  void write_index();
  void remove_strays() const;
  [[nodiscard]] std::string file_of(std::string_view name) const;
  /// The name of the longest one that the prompt begins with; empty: there is none.
  [[nodiscard]] std::string longest(const CachedPrompt& prompt, const std::string& scope) const;
  [[nodiscard]] Entries::iterator find(std::string_view name);
  [[nodiscard]] bool is_whole(const CacheEntry& entry) const;
  /// `spared`: how many of those used last are not removed for it.
  std::optional<CachePlan::Save> plan_save(const CachedPrompt& prompt, std::string scope,
                                           std::size_t spared);
  /// Removes those used least recently until one more of `bytes` is within the limits. Returns
  /// whether it is.
  bool make_room(std::uint64_t bytes, std::size_t spared);
  void remove(Entries::iterator entry);
  void release(const CachePlan::Save& save);
  void count_failure(std::string_view why);

  std::string path_;
  Descriptor lock_;
  PromptCacheLimits limits_;
  Entries entries_;             // those used least recently first
  std::uint64_t bytes_ = 0;     // of them
  std::uint64_t reserved_ = 0;  // for saves
  std::uint64_t saves_ = 0;     // how many were begun
  std::uint64_t per_byte_ = 0;  // the most bytes of a file for one of its prompt; 0: not known
  std::uint32_t failures_ = 0;  // of saves, in a row
  bool is_changed_ = false;     // since the index was written
};

}  // namespace sluice::rkllm

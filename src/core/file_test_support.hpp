#pragma once

#include <filesystem>
#include <fstream>
#include <stdlib.h>  // mkdtemp
#include <string>
#include <string_view>
#include <system_error>

namespace sluice::test {

/// A new directory, so that tests can run in parallel. The destructor removes it with its contents.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sluice-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  [[nodiscard]] std::string path() const { return path_.string(); }
  /// The path of a file with that name in the directory, whether it exists or not.
  [[nodiscard]] std::string path(std::string_view name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

/// A file of the given name in a new directory. The file exists only after something was written to
/// it.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view name) : path_(directory_.path(name)) {}
  TemporaryFile(std::string_view name, std::string_view content) : TemporaryFile(name) {
    write(content);
  }

  void write(std::string_view content) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << content;
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  TemporaryDirectory directory_;
  std::string path_;
};

}  // namespace sluice::test

#pragma once

#include <filesystem>
#include <fstream>
#include <stdlib.h>  // mkdtemp
#include <string>
#include <string_view>
#include <system_error>

namespace sluice::test {

/// A directory of its own, so that tests can run side by side; removed with all that is in it.
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
  /// Where a file of that name is, or would be.
  [[nodiscard]] std::string path(std::string_view name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

/// A file of the given name in a directory of its own. It is there once something was written.
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

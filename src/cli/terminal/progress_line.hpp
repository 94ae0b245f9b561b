#pragma once

#include <string_view>

namespace sluice {

/// A line on the terminal that is overwritten again and again, and removed at the end.
class ProgressLine {
 public:
  /// Shows nothing unless `fd` is a terminal and `wanted`.
  ProgressLine(int fd, bool wanted);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// The cursor is at the beginning of the line afterwards, so that a message in between replaces
  /// it.
  void show(std::string_view text);
  void clear();

 private:
  int fd_;
  bool wanted_;
  bool shown_ = false;
};

}  // namespace sluice

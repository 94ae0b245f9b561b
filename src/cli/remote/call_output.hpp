#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/content/content_text.hpp"
#include "cli/terminal/progress_line.hpp"
#include "sluice/client.hpp"

namespace sluice {

/// What is left to print of a tool's text, if its beginning was printed while it came. If it goes
/// on where that ended, only the rest; otherwise all of it, on a line of its own.
std::string rest_of(std::string_view text, std::string_view streamed);

/// What the line of progress says, as in `40 % Reading`.
std::string progress_text(const CallEvent& event);

/// Prints what a call says while it runs. Messages without a total are pieces of the tool's output,
/// and go to standard output at once. Progress with a total is a line on the terminal of standard
/// error.
class CallOutput {
 public:
  /// `is_quiet`: nothing is printed before the result.
  explicit CallOutput(bool is_quiet);

  /// Returns an exit code if the output takes no more.
  std::optional<int> add(const CallEvent& event);
  /// What was printed; empty if pieces of it were missed, which is said on standard error.
  std::string finish();

 private:
  bool is_quiet_;
  bool has_gap_ = false;
  std::string streamed_;
  ProgressLine progress_;
};

/// Shows what a call says while it runs, and its result. Images, audio and binary resources go to
/// `place`. `as_json`: the result as JSON, and nothing else. Returns the program's exit code.
/// Throws Error.
int show_call(PendingCall<ToolReply>& call, bool as_json, const ContentPlace& place);

}  // namespace sluice

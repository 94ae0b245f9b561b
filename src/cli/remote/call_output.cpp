#include "cli/remote/call_output.hpp"

#include <algorithm>
#include <cmath>
#include <unistd.h>
#include <utility>

#include "cli/options/exit_code.hpp"
#include "cli/terminal/terminal.hpp"

namespace sluice {
namespace {

/// Of what was printed, so much is kept to compare it with the result.
constexpr std::size_t kMaxStreamed = std::size_t{64} << 20U;

}  // namespace

std::string rest_of(std::string_view text, std::string_view streamed) {
  if (text.starts_with(streamed)) return std::string(text.substr(streamed.size()));
  return (streamed.ends_with('\n') ? "" : "\n") + std::string(text);
}

std::string progress_text(const CallEvent& event) {
  constexpr double kWhole = 100;
  const double share = event.total && *event.total > 0 ? event.progress / *event.total : 0;
  const auto percent = std::lround(std::clamp(share, 0.0, 1.0) * kWhole);
  std::string out = std::to_string(percent) + " %";
  if (!event.message.empty()) out.append(" ").append(one_line(event.message));
  return out;
}

CallOutput::CallOutput(bool is_quiet) : is_quiet_(is_quiet), progress_(STDERR_FILENO, !is_quiet) {}

std::optional<int> CallOutput::add(const CallEvent& event) {
  if (is_quiet_) return std::nullopt;
  has_gap_ = has_gap_ || event.dropped > 0;
  if (event.total) {
    progress_.show(progress_text(event));
    return std::nullopt;
  }
  if (event.message.empty()) return std::nullopt;
  progress_.clear();
  const std::string text = printable(event.message);
  if (streamed_.size() + text.size() <= kMaxStreamed) {
    streamed_.append(text);
  } else {
    has_gap_ = true;
  }
  const int printed = print(text);
  return printed == kExitOk ? std::nullopt : std::optional(printed);
}

std::string CallOutput::finish() {
  progress_.clear();
  if (!has_gap_) return std::move(streamed_);
  complain("pieces of the output came faster than they could be printed; all of it follows");
  return {};
}

}  // namespace sluice

#include "cli/remote/call_output.hpp"

#include <algorithm>
#include <cmath>
#include <unistd.h>
#include <utility>

#include "cli/options/exit_code.hpp"
#include "cli/terminal/terminal.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

/// Of what was printed, so much is kept to compare it with the result.
constexpr std::size_t kMaxStreamed = std::size_t{64} << 20U;

/// What an event says of the state of a task; empty if it is about something else.
std::string state_text(const CallEvent& event) {
  const std::string_view status = text_at(event.params, "status");
  if (status.empty()) return {};
  std::string out = one_line(status);
  if (const std::string_view why = text_at(event.params, "statusMessage"); !why.empty()) {
    out.append(": ").append(one_line(why));
  }
  return out;
}

/// Everything of a result as text: its content, or its structured content if there is no other.
ShownContent shown_reply(const ToolReply& reply, const ContentPlace& place) {
  const json::value* const content = reply.result.if_contains("content");
  const bool has_structured = !reply.structured().is_null();
  if (content == nullptr ? !has_structured : !content->is_array()) {
    return server_mistake("content must be an array");
  }
  ShownContent out =
      content == nullptr ? ShownContent() : shown_content(content->get_array(), place);
  if (out.text.empty() && out.notes.empty() && has_structured) {
    out.text = printable_json(to_json(reply.structured())) + "\n";
  }
  return out;
}

int print_reply(const ToolReply& reply, const std::string& streamed, ContentPlace place) {
  // The text of a failure goes elsewhere: not to the terminal that shows images, and to where
  // messages of this program are.
  if (reply.is_error()) {
    place.images = ImageProtocol::none;
    place.passes_text = false;
  }
  ShownContent shown = shown_reply(reply, place);
  if (!reply.is_error()) {
    if (!streamed.empty()) shown.replace_text(rest_of(shown.text, streamed));
    return print(shown);
  }
  if (!streamed.empty() && !streamed.ends_with('\n')) print("\n");
  for (const std::string& note : shown.notes) complain(note);
  write_all(STDERR_FILENO, shown.text.empty() ? "The tool has failed\n" : shown.text);
  return kExitToolError;
}

int print_json(const ToolReply& reply) {
  const int printed = print(printable_json(to_json(reply.result)) + "\n");
  if (printed != kExitOk || !reply.is_error()) return printed;
  complain("the tool has failed");
  return kExitToolError;
}

}  // namespace

std::string rest_of(std::string_view text, std::string_view streamed) {
  if (text.starts_with(streamed)) return std::string(text.substr(streamed.size()));
  return (streamed.ends_with('\n') ? "" : "\n") + std::string(text);
}

std::string progress_text(const CallEvent& event) {
  constexpr std::size_t kBarWidth = 20;
  constexpr std::size_t kWhole = 100;
  const double share = event.total && *event.total > 0 ? event.progress / *event.total : 0;
  const bool is_known = !std::isnan(share);  // as if both are too large for a number
  const auto percent = is_known ? std::lround(std::clamp(share, 0.0, 1.0) * kWhole) : 0;
  std::string out = "[" + std::string(kBarWidth, '-') + "] " + std::to_string(percent) + " %";
  const auto done = static_cast<std::size_t>(percent) * kBarWidth / kWhole;
  std::fill_n(out.begin() + 1, done, '#');
  if (!event.message.empty()) out.append(" ").append(one_line(event.message));
  return out;
}

CallOutput::CallOutput(bool is_quiet) : is_quiet_(is_quiet), progress_(STDERR_FILENO, !is_quiet) {}

std::optional<int> CallOutput::add(const CallEvent& event) {
  if (is_quiet_) return std::nullopt;
  if (event.is_restart && !std::exchange(streamed_, {}).empty()) print("\n");
  has_gap_ = has_gap_ || event.dropped > 0;
  if (event.total) {
    progress_.show(progress_text(event));
    return std::nullopt;
  }
  if (event.message.empty()) {
    if (const std::string state = state_text(event); !state.empty()) progress_.show(state);
    return std::nullopt;
  }
  progress_.clear();
  const std::string text = text_for(STDOUT_FILENO, event.message);
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

int show_call(PendingCall<ToolReply>& call, bool as_json, const ContentPlace& place) {
  CallOutput output(as_json);
  while (const auto event = call.next()) {
    if (const auto failed = output.add(*event)) return *failed;
  }
  const std::string streamed = output.finish();
  const ToolReply reply = call.result();
  return as_json ? print_json(reply) : print_reply(reply, streamed, place);
}

}  // namespace sluice

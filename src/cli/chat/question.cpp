#include "cli/chat/question.hpp"

#include "core/text/text.hpp"

namespace sluice {
namespace {

constexpr std::string_view kWhiteSpace = " \t\r\n\v\f";

}  // namespace

std::string join_question(std::string_view prompt, std::string_view input) {
  // Line breaks at the end come from the programs that write the input, not from the user.
  while (input.ends_with('\n') || input.ends_with('\r')) input.remove_suffix(1);
  const bool has_input = !trim(input, kWhiteSpace).empty();
  if (trim(prompt, kWhiteSpace).empty()) return std::string(has_input ? input : "");
  std::string question(prompt);
  if (has_input) question.append("\n\n").append(input);
  return question;
}

}  // namespace sluice

#include "cli/remote/remote_words.hpp"

#include <algorithm>
#include <span>

#include "cli/options/exit_code.hpp"
#include "core/text/secrets.hpp"
#include "core/text/text.hpp"

namespace sluice {
namespace {

using Words = std::span<const std::string>;

bool is_object(std::string_view word) {
  return word == "-" || word.starts_with('{');
}

bool is_argument(std::string_view word, const WordForm& form) {
  return (form.takes_assignments && is_assignment(word)) || (form.takes_object && is_object(word));
}

std::string missing(const WordForm& form) {
  return "give " + std::string(form.name);
}

/// Takes what follows the target.
Result<void> take_rest(RemoteWords& out, Words rest, const WordForm& form) {
  if (!form.name.empty()) {
    if (rest.empty()) return fail(kExitUsage, missing(form));
    out.name = rest.front();
    rest = rest.subspan(1);
  }
  for (const std::string& word : rest) {
    if (form.takes_object && is_object(word)) {
      if (!out.object.empty()) return fail(kExitUsage, "give the arguments as one JSON object");
      out.object = word;
    } else if (form.takes_assignments && is_assignment(word)) {
      out.assignments.push_back(word);
    } else if (form.takes_assignments) {
      return fail(kExitUsage,
                  "\"" + word + "\" is no argument: give NAME=VALUE, such as text=hello");
    } else {
      return fail(kExitUsage,
                  "there is no use for \"" + masked_word(word) + "\" behind the others");
    }
  }
  return {};
}

}  // namespace

bool is_assignment(std::string_view word) {
  std::string_view name = word.substr(0, word.find('='));
  if (name.size() == word.size()) return false;
  if (name.ends_with(':')) name.remove_suffix(1);
  return !name.empty() && name.front() != '-' && std::ranges::all_of(name, [](char c) {
    return is_letter(c) || is_digit(c) || c == '_' || c == '-' || c == '.' || c == '$' ||
           !is_ascii(c);
  });
}

Result<RemoteWords> split_words(const std::vector<std::string>& words,
                                const std::vector<std::string>& command, const WordForm& form) {
  RemoteWords out;
  Words rest = words;
  if (command.empty()) {
    if (words.empty()) return out;  // parse_target() says what a target is
    out.target.word = words.front();
    rest = rest.subspan(1);
  } else if (!words.empty()) {
    out.target.command = command;
  } else {
    auto end = command.end();
    while (end != command.begin() && is_argument(*(end - 1), form)) --end;
    if (!form.name.empty() && end != command.begin()) --end;
    if (end == command.begin()) {
      return fail(kExitUsage, missing(form) + " behind the command that starts the server");
    }
    out.target.command.assign(command.begin(), end);
    rest = Words(end, command.end());
  }
  if (auto taken = take_rest(out, rest, form); !taken) return std::unexpected(taken.error());
  return out;
}

}  // namespace sluice

#include "cli/questions/terminal_answers.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <poll.h>
#include <stop_token>
#include <sys/eventfd.h>
#include <termios.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "cli/content/exact_json.hpp"
#include "cli/content/schema_hints.hpp"
#include "cli/terminal/interrupts.hpp"
#include "cli/terminal/terminal.hpp"
#include "core/text/text.hpp"
#include "json/members.hpp"
#include "json_schema/json_schema.hpp"
#include "net/http/url.hpp"
#include "net/loop/descriptor.hpp"
#include "protocol/error_codes.hpp"

namespace sluice {
namespace {

constexpr std::size_t kMaxAnswer = std::size_t{64} << 10U;  // bytes of a line

json::object elicit_action(std::string_view name) {
  return {{"action", name}};
}

/// A value that can be chosen, and what it is called.
struct Choice {
  json::value value;
  std::string title;
};

/// The values of `enum` with `enumNames`, or of `oneOf` or `anyOf` with `const` and `title`.
std::vector<Choice> choices_of(const json::object& schema) {
  std::vector<Choice> out;
  if (const json::value* const values = schema.if_contains("enum");
      values != nullptr && values->is_array()) {
    const json::value* const titles = schema.if_contains("enumNames");
    const json::array* const names = titles == nullptr ? nullptr : titles->if_array();
    for (const json::value& value : values->get_array()) {
      const std::size_t at = out.size();
      const bool is_named = names != nullptr && at < names->size() && (*names)[at].is_string();
      out.push_back({value, is_named ? std::string((*names)[at].get_string()) : ""});
    }
    return out;
  }
  for (const std::string_view key : {"oneOf", "anyOf"}) {
    const json::value* const alternatives = schema.if_contains(key);
    if (alternatives == nullptr || !alternatives->is_array()) continue;
    for (const json::value& each : alternatives->get_array()) {
      const json::object* const one = each.if_object();
      const json::value* const value = one == nullptr ? nullptr : one->if_contains("const");
      if (value != nullptr) out.push_back({*value, std::string(text_at(*one, "title"))});
    }
  }
  return out;
}

std::string shown_value(const json::value& value) {
  return one_line(value.is_string() ? std::string(value.get_string()) : to_json(value));
}

/// A field of a form.
struct Field {
  std::string name;
  const json::object* schema;
  bool is_required;
  std::vector<Choice> choices = {};
  bool takes_many = false;  // several of the choices
};

Field field_of(std::string_view name, const json::object& schema, bool is_required) {
  Field out{.name = std::string(name), .schema = &schema, .is_required = is_required};
  const json::object* const items = object_at(schema, "items");
  out.takes_many = text_at(schema, "type") == "array" && items != nullptr;
  out.choices = choices_of(out.takes_many ? *items : schema);
  return out;
}

std::string question_of(const Field& field) {
  const std::string_view title = text_at(*field.schema, "title");
  std::string out = one_line(title.empty() ? std::string_view(field.name) : title);
  if (const auto about = text_at(*field.schema, "description"); !about.empty()) {
    out.append(" - ").append(one_line(about));
  }
  out.push_back('\n');
  for (std::size_t i = 0; i < field.choices.size(); ++i) {
    const Choice& choice = field.choices[i];
    out.append("  ").append(std::to_string(i + 1)).append(") ").append(shown_value(choice.value));
    if (!choice.title.empty()) out.append("  ").append(one_line(choice.title));
    out.push_back('\n');
  }
  std::string kind = field.choices.empty()
                         ? type_text(*field.schema, *field.schema)
                         : std::string(field.takes_many ? "numbers, with commas" : "a number");
  if (text_at(*field.schema, "type") == "boolean") kind = "yes or no";
  if (const auto format = text_at(*field.schema, "format"); !format.empty()) {
    kind.append(", ").append(one_line(format));
  }
  if (const json::value* const initial = field.schema->if_contains("default")) {
    kind.append(", Enter for ").append(shown_value(*initial));
  } else if (!field.is_required) {
    kind.append(", Enter for none");
  }
  return out.append("  [").append(kind).append("] ");
}

const Choice* chosen_choice(const std::vector<Choice>& choices, std::string_view text) {
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const Choice& choice = choices[i];
    if (text == std::to_string(i + 1) || text == shown_value(choice.value) ||
        (!choice.title.empty() && text == one_line(choice.title))) {
      return &choice;
    }
  }
  return nullptr;
}

/// What the user has typed, as the field has it. Nothing if it is none of the choices.
std::optional<json::value> chosen_value(const Field& field, std::string_view text) {
  if (!field.takes_many) {
    const Choice* const one = chosen_choice(field.choices, trim(text));
    return one == nullptr ? std::nullopt : std::optional(one->value);
  }
  json::array out;
  while (true) {
    const auto comma = text.find(',');
    const Choice* const one = chosen_choice(field.choices, trim(text.substr(0, comma)));
    if (one == nullptr) return std::nullopt;
    out.push_back(one->value);
    if (comma == std::string_view::npos) return out;
    text.remove_prefix(comma + 1);
  }
}

json::value typed_answer(const Field& field, const std::string& text) {
  const SchemaTypes types = types_of(*field.schema, *field.schema);
  if (types.boolean) {
    if (const auto is_yes = said_yes(text)) return *is_yes;
  }
  if (!types.string) {
    if (auto parsed = exact_json(text)) return *std::move(parsed);
  }
  return json::value(text);
}

/// Why `value` is no answer; empty if it is one.
std::string misfit_of(const Field& field, const json::value& value) {
  const auto schema = JsonSchema::compile(*field.schema, {.assert_formats = true});
  if (!schema) return {};  // the server must say what it thinks of the answer
  const auto fits = schema->validate(value);
  return fits ? std::string() : one_line(fits.error().describe(field.name));
}

enum class Asked : std::uint8_t { answered, left_out, over };

/// Asks for one field until the answer fits.
Asked ask_field(const Field& field, const AskedUser& user, json::object& content) {
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    user.show(question_of(field));
    const auto line = user.read_line();
    if (!line) return Asked::over;
    const std::string text(trim(*line));
    if (text.empty()) {
      const json::value* const initial = field.schema->if_contains("default");
      if (initial != nullptr) {
        content[field.name] = *initial;
        return Asked::answered;
      }
      if (!field.is_required) return Asked::left_out;
    }
    const auto value = field.choices.empty() ? std::optional(typed_answer(field, text))
                                             : chosen_value(field, text);
    const std::string wrong = value ? misfit_of(field, *value) : "choose one of the numbers";
    if (wrong.empty()) {
      content[field.name] = *value;
      return Asked::answered;
    }
    user.show("  " + wrong + "\n");
  }
  user.show("Too many answers did not fit.\n");
  return Asked::over;
}

/// Whether the user agrees. Nothing: they want to answer no more.
std::optional<bool> ask_consent(const AskedUser& user, std::string_view question) {
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    user.show(question);
    const auto line = user.read_line();
    if (!line) return std::nullopt;
    if (const auto answer = said_yes(*line)) return answer;
  }
  return std::nullopt;
}

/// Where the user is to go; empty if that is no page.
std::string page_wish(const json::object& params) {
  const std::string text = one_line(text_at(params, "url"));
  const auto url = parse_url(text);
  if (!url || url->is_websocket()) return {};
  return "Go to this page, if you trust " + url->host + ". It is not opened for you:\n  " + text +
         "\n";
}

json::object ask_url(const json::object& params, const AskedUser& user) {
  const std::string wish = page_wish(params);
  if (wish.empty()) {
    user.show("It names a URL that is none, which is declined.\n");
    return elicit_action("decline");
  }
  user.show(wish);
  const auto agrees = ask_consent(user, "Do you go there? [yes or no] ");
  if (!agrees) return elicit_action("cancel");
  return elicit_action(*agrees ? "accept" : "decline");
}

json::object ask_form(const json::object& params, const AskedUser& user) {
  static const json::object kNone;
  const json::object* const schema = object_at(params, "requestedSchema");
  const json::object* const given = schema == nullptr ? nullptr : object_at(*schema, "properties");
  const json::object& properties = given == nullptr ? kNone : *given;
  if (properties.size() > kMaxFields) {
    user.show("It has too many fields, and is declined.\n");
    return elicit_action("decline");
  }
  json::object content;
  for (const auto& [name, property] : properties) {
    if (!property.is_object()) continue;
    const Field field = field_of(name, property.get_object(), requires_property(*schema, name));
    if (ask_field(field, user, content) == Asked::over) return elicit_action("cancel");
  }
  const auto agrees = ask_consent(user, "Send " + one_line(to_json(content)) + "? [yes or no] ");
  if (!agrees) return elicit_action("cancel");
  if (!*agrees) return elicit_action("decline");
  return {{"action", "accept"}, {"content", std::move(content)}};
}

/// How often somebody looks whether a question is still to be asked, who waits for others.
constexpr std::chrono::milliseconds kTurnLook(50);

/// How long the end of a question is waited for after an interrupt, in milliseconds.
constexpr int kLongestFarewell = 2000;

/// Reads a line from the terminal, or nothing at its end or when nobody waits for the answer.
std::optional<std::string> read_terminal_line(const std::stop_token& stop) {
  const Descriptor over(::eventfd(0, EFD_CLOEXEC));
  if (!over) return std::nullopt;
  const std::stop_callback woken(stop, [&over] { ::eventfd_write(over.get(), 1); });
  std::string line;
  while (line.size() < kMaxAnswer) {
    // A descriptor of -1 is ignored.
    std::array<pollfd, 3> waits{
        {{STDIN_FILENO, POLLIN, 0}, {over.get(), POLLIN, 0}, {Interrupts::fd(), POLLIN, 0}}};
    if (::poll(waits.data(), waits.size(), -1) < 0) continue;  // a signal came
    if (waits[1].revents != 0 || waits[2].revents != 0) {
      // The shell must not read what was typed for the server.
      ::tcflush(STDIN_FILENO, TCIFLUSH);
      if (waits[2].revents == 0 && !Interrupts::is_pending()) {
        write_all(STDERR_FILENO, "\nThe question was withdrawn.\n");
      }
      // An interrupt ends what the question belongs to. It is no answer, which could be faster.
      if (waits[1].revents == 0 && stop.stop_possible()) {
        ::poll(&waits[1], 1, kLongestFarewell);
      }
      return std::nullopt;
    }
    char c = 0;
    const ssize_t got = ::read(STDIN_FILENO, &c, 1);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return std::nullopt;
    if (c == '\n') return line;
    line.push_back(c);
  }
  return std::nullopt;
}

}  // namespace

bool has_terminal_user() {
  return is_terminal(STDIN_FILENO) && is_terminal(STDERR_FILENO);
}

std::optional<AskedUser> terminal_user(std::stop_token over) {
  if (!has_terminal_user()) return std::nullopt;
  // The thread of the answers and that of a command may both want to ask.
  static std::recursive_timed_mutex asking;
  std::unique_lock turn(asking, std::defer_lock);
  while (!turn.try_lock_for(kTurnLook)) {
    if (over.stop_requested()) return std::nullopt;
  }
  return AskedUser{.show =
                       [](std::string_view text) {
                         // The user has ended what the question belongs to.
                         if (!Interrupts::is_pending()) write_all(STDERR_FILENO, text);
                       },
                   .read_line = [over = std::move(over)] { return read_terminal_line(over); },
                   .turn = std::make_shared<decltype(turn)>(std::move(turn))};
}

std::optional<bool> said_yes(std::string_view text) {
  const std::string word = to_lower(trim(text));
  if (word == "y" || word == "yes" || word == "true") return true;
  if (word == "n" || word == "no" || word == "false") return false;
  return std::nullopt;
}

json::object ask_user(const json::object& params, const AskedUser& user) {
  user.show("\nThe server asks: " + printable(text_at(params, "message")) + "\n");
  return text_at(params, "mode") == "url" ? ask_url(params, user) : ask_form(params, user);
}

std::string pages_before(const Error& refusal) {
  if (refusal.code != kUrlElicitationRequired) return {};
  const auto data = parse_json(refusal.data);
  const json::object* const members = data ? data->if_object() : nullptr;
  const json::value* const pages =
      members == nullptr ? nullptr : members->if_contains("elicitations");
  std::string out;
  if (pages == nullptr || !pages->is_array()) return out;
  for (const json::value& each : pages->get_array()) {
    if (!each.is_object()) continue;
    const std::string wish = page_wish(each.get_object());
    if (wish.empty()) continue;
    out.append(printable(text_at(each.get_object(), "message"))).append("\n").append(wish);
  }
  return out.empty() ? out : out.append("Run the command again when you have been there.\n");
}

ClientOptions terminal_answers() {
  ClientOptions out;
  out.on_elicitation = [](const json::object& params) {
    if (const auto user = terminal_user()) return ask_user(params, *user);
    complain("the server asks: " + std::string(text_at(params, "message")) +
             "; declined, as there is no terminal");
    return elicit_action("decline");
  };
  return out;
}

}  // namespace sluice

#include "cli/agent/policy_option.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "agent/policy/reaction_trigger.hpp"
#include "cli/options/config_value.hpp"
#include "cli/options/exit_code.hpp"
#include "core/text/text.hpp"

namespace sluice {
namespace {

constexpr std::string_view kWords =
    "give pass, chunk, every=N, pause, match=REGEX, demand, idle or interrupt";

std::optional<std::uint32_t> count_in(std::string_view text) {
  const auto number = parse_integer(text);
  if (!number || *number < 0 || *number > std::numeric_limits<std::uint32_t>::max()) return {};
  return static_cast<std::uint32_t>(*number);
}

template <class Value, class To>
bool put(const std::optional<Value>& value, To& to) {
  if (value) to = *value;
  return value.has_value();
}

/// Takes a JSON object and the colon behind it from the beginning of a text, if they are there.
std::optional<json::object> take_arguments(std::string_view& text) {
  constexpr std::string_view kEnd = "}:";
  for (auto at = text.find(kEnd); at != std::string_view::npos; at = text.find(kEnd, at + 1)) {
    const auto parsed = parse_json(text.substr(0, at + 1));
    if (!parsed || !parsed->is_object()) continue;
    text.remove_prefix(at + kEnd.size());
    return parsed->get_object();
  }
  return {};
}

/// Takes one word into the policy. Returns false if it is none.
bool take_word(std::string_view name, std::string_view value, bool has_value, bool is_first,
               ReactionPolicy& policy) {
  using When = ReactionPolicy::When;
  if (is_first) {
    if (name == "pass" && !has_value) return policy.when = When::pass_through, true;
    if (name == "chunk" && !has_value) return policy.when = When::every_chunk, true;
    if (name == "demand" && !has_value) return policy.when = When::on_demand, true;
    if (name == "idle" && !has_value) return policy.when = When::on_idle, true;
    if (name == "interrupt" && !has_value) {
      policy.when = When::every_chunk;
      policy.interrupts = true;
      return true;
    }
    if (name == "every") return policy.when = When::every_n, put(count_in(value), policy.every);
    if (name == "pause") {
      policy.when = When::debounce;
      return !has_value || put(parse_duration(value), policy.quiet);
    }
    if (name != "match") return false;
    policy.when = When::match;
    policy.pattern = value;
    return true;
  }
  if (name == "interrupt" && !has_value) return policy.interrupts = true;
  if (name == "wait") return put(parse_duration(value), policy.max_wait);
  if (name == "bytes") return put(parse_size(value), policy.max_bytes);
  if (name == "min") return put(parse_duration(value), policy.min_interval);
  if (name == "reactions") return put(count_in(value), policy.max_reactions);
  if (name == "tokens") return put(count_in(value), policy.max_reaction_tokens);
  return false;
}

}  // namespace

bool is_name_of_tool(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return is_letter(c) || is_digit(c) || c == '_' || c == '-' || c == '.';
  });
}

Result<PolicyOption> parse_policy(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return fail(kExitUsage, "--policy: \"" + std::string(text) + "\": " + std::string(why));
  };
  PolicyOption out;
  std::string_view rest = text;
  const std::size_t name_end = rest.find_first_of(":{");
  if (name_end != std::string_view::npos && is_name_of_tool(rest.substr(0, name_end))) {
    out.tool = rest.substr(0, name_end);
    rest.remove_prefix(name_end);
    if (rest.front() == ':') {
      rest.remove_prefix(1);
    } else if (out.arguments = take_arguments(rest); !out.arguments) {
      return wrong("behind a tool's name, give a colon, or arguments as a JSON object and a colon");
    }
  }
  // What matches may have commas in it, so it is the whole end.
  std::string_view pattern;
  const std::size_t match = rest.find("match=");
  const bool has_match = match != std::string_view::npos && (match == 0 || rest[match - 1] == ',');
  if (has_match) {
    pattern = rest.substr(match);
    rest = match == 0 ? std::string_view() : rest.substr(0, match - 1);
    if (!take_word("match", pattern.substr(6), true, true, out.policy)) return wrong(kWords);
  }
  bool is_first = !has_match;
  while (!rest.empty() || is_first) {
    const std::size_t comma = rest.find(',');
    const std::string_view word = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    const std::size_t equals = word.find('=');
    const bool has_value = equals != std::string_view::npos;
    const std::string_view value = has_value ? word.substr(equals + 1) : std::string_view();
    if (!take_word(word.substr(0, equals), value, has_value, is_first, out.policy)) {
      return wrong(is_first ? kWords
                            : "other words may be interrupt, min=TIME, "
                              "reactions=N, tokens=N, and with pause wait=TIME and bytes=SIZE");
    }
    is_first = false;
  }
  if (const auto checked = check(out.policy); !checked) return wrong(checked.error().message);
  return out;
}

}  // namespace sluice

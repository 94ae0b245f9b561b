#include "cli/completion/word_offers.hpp"

#include <algorithm>
#include <utility>

#include "cli/content/schema_hints.hpp"
#include "cli/remote/listing.hpp"
#include "cli/remote/remote_words.hpp"
#include "cli/terminal/terminal.hpp"
#include "core/text/text.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

constexpr std::size_t kMaxAbout = 80;  // bytes

/// The words of a command, if the first is a target.
const OptionOutline* target_of(const CommandOutline& command) {
  const auto first = std::ranges::find_if(command.options, &OptionOutline::is_argument);
  const bool is_target = first != command.options.end() && first->operand.starts_with("TARGET");
  return is_target ? &*first : nullptr;
}

const OptionOutline* option_named(const CommandOutline& command, std::string_view name) {
  const auto found = std::ranges::find_if(command.options, [&](const OptionOutline& option) {
    return std::ranges::count(option.names, name) > 0;
  });
  return found == command.options.end() ? nullptr : &*found;
}

/// What stands in this place behind the target, by the operand of the command. Nothing: no word.
std::optional<TypedWord::Place> place_of(std::string_view operand, std::size_t position) {
  using Place = TypedWord::Place;
  if (position == 0) return Place::target;
  const bool is_tool = operand.contains(" TOOL");
  if (!is_tool && !operand.contains(" PROMPT")) {
    return position == 1 && operand.contains(" URI") ? std::optional(Place::resource)
                                                     : std::nullopt;
  }
  if (position == 1) return is_tool ? Place::tool : Place::prompt;
  if (!operand.contains("NAME=VALUE")) return std::nullopt;
  return is_tool ? Place::tool_argument : Place::prompt_argument;
}

/// The names of the arguments that have their values.
bool is_given(const TypedWord& typed, std::string_view name) {
  return std::ranges::any_of(typed.assignments, [&](std::string_view one) {
    std::string_view given = one.substr(0, one.find('='));
    if (given.ends_with(':')) given.remove_suffix(1);
    return given == name;
  });
}

std::string about_argument(std::string_view type, std::string_view description) {
  std::string out(type);
  if (const std::string said = first_sentence(description); !said.empty()) {
    out.append(out.empty() ? "" : ", ").append(said);
  }
  return out;
}

/// The values that a schema lists.
void add_values(std::vector<Offer>& offers, std::string_view name, const json::value& schema,
                const json::object& root) {
  const json::object* const members = resolved(schema, root);
  if (members == nullptr) return;
  if (const json::value* const items = members->if_contains("items")) {
    return add_values(offers, name, *items, root);
  }
  const auto add = [&](std::string_view value) {
    offers.push_back({std::string(name) + "=" + std::string(value)});
  };
  if (const json::value* const values = members->if_contains("enum");
      values != nullptr && values->is_array()) {
    for (const json::value& each : values->get_array()) {
      add(each.is_string() ? std::string(each.get_string()) : to_json(each));
    }
  } else if (text_at(*members, "type") == "boolean") {
    add("true");
    add("false");
  }
}

bool is_array_type(const json::value& schema, const json::object& root) {
  const SchemaTypes types = types_of(schema, root);
  return types.array && !types.is_silent;
}

}  // namespace

bool takes_target(const CommandOutline& command) {
  return target_of(command) != nullptr;
}

std::optional<TypedWord> typed_word(const CommandOutline& program,
                                    std::span<const std::string> words) {
  if (words.size() < 2) return std::nullopt;
  const CommandOutline* const command = program.find(words.front());
  const OptionOutline* const operand = command == nullptr ? nullptr : target_of(*command);
  if (operand == nullptr || words.back().starts_with('-')) return std::nullopt;
  TypedWord out{.begin = words.back()};
  std::vector<std::string> before;
  for (auto word = words.begin() + 1; word != words.end() - 1; ++word) {
    if (*word == "--") return std::nullopt;
    if (word->size() < 2 || word->front() != '-') {
      before.push_back(*word);
      continue;
    }
    const auto equals = word->find('=');
    const OptionOutline* const option = option_named(*command, word->substr(0, equals));
    if (option == nullptr || option->operand.empty()) continue;
    if (equals == std::string::npos && ++word == words.end() - 1) return std::nullopt;
    const std::string value = equals == std::string::npos ? *word : word->substr(equals + 1);
    if (std::ranges::count(option->names, "--header") > 0) out.headers.push_back(value);
    if (std::ranges::count(option->names, "--revision") > 0) out.revision = value;
  }
  const auto place = place_of(operand->operand, before.size());
  if (!place) return std::nullopt;
  out.place = *place;
  if (!before.empty()) out.target = before[0];
  if (before.size() > 1) out.name = before[1];
  for (std::size_t i = 2; i < before.size(); ++i) out.assignments.push_back(before[i]);
  return out;
}

std::vector<Offer> tool_argument_offers(const json::object& schema, const TypedWord& typed) {
  std::vector<Offer> offers;
  const auto equals = typed.begin.find('=');
  if (equals != std::string::npos) {
    const std::string name = typed.begin.substr(0, equals);
    if (const json::value* const property = property_schema(schema, name)) {
      add_values(offers, name, *property, schema);
    }
    return offers;
  }
  const json::object* const properties = object_at(schema, "properties");
  // Required ones first, as in a signature.
  for (const bool is_required : {true, false}) {
    if (properties == nullptr) break;
    for (const auto& [name, property] : *properties) {
      if (requires_property(schema, name) != is_required) continue;
      if (is_given(typed, name) && !is_array_type(property, schema)) continue;
      const json::object* const members = resolved(property, schema);
      const std::string_view about = members == nullptr ? "" : text_at(*members, "description");
      offers.push_back(
          {std::string(name) + "=", about_argument(type_text(property, schema), about)});
    }
  }
  return offers;
}

std::vector<Offer> prompt_argument_offers(const json::object& definition, const TypedWord& typed) {
  std::vector<Offer> offers;
  const json::value* const arguments = definition.if_contains("arguments");
  if (arguments == nullptr || !arguments->is_array()) return offers;
  for (const json::value& each : arguments->get_array()) {
    const json::object* const argument = each.if_object();
    if (argument == nullptr) continue;
    const std::string_view name = text_at(*argument, "name");
    if (name.empty() || is_given(typed, name)) continue;
    offers.push_back(
        {std::string(name) + "=", about_argument({}, text_at(*argument, "description"))});
  }
  return offers;
}

std::string offer_lines(std::span<const Offer> offers, std::string_view begin) {
  std::string out;
  std::size_t count = 0;
  for (const Offer& offer : offers) {
    // What begins with a dash would be an option of ours.
    const bool is_typable = !offer.word.empty() && !offer.word.starts_with('-') &&
                            one_line(offer.word) == offer.word && !offer.word.contains('\t');
    if (!is_typable || !offer.word.starts_with(begin)) continue;
    if (++count > kMaxOffers) break;
    std::string about = shortened(one_line(offer.about), kMaxAbout);
    std::ranges::replace(about, '\t', ' ');
    out.append(offer.word).append("\t").append(about).append("\n");
  }
  return out;
}

}  // namespace sluice

#include "engine/llama/grammar/schema_grammar.hpp"

#include <algorithm>
#include <common/json.h>
#include <cstddef>
#include <string_view>
#include <unordered_map>

#include <common/json-schema-to-grammar.h>

namespace sluice {
namespace {

/// Gives each reference of a document a name of its own. llama.cpp makes the name of a rule of the
/// path to it, writes `-` for what is no letter and no digit, and takes any rule that has the name
/// of a reference for its target. These names have one length, and the rules within a target have
/// longer ones.
class ReferenceNames {
 public:
  explicit ReferenceNames(common_chat_schema_document& document) {
    for (const auto& [reference, target] : document.refs) {
      std::string number = std::to_string(names_.size());
      number.insert(0, kDigits - std::min(kDigits, number.size()), '0');
      names_.emplace(reference, "#/" + number);
    }
    rename(*document.root);
    for (const auto& [reference, target] : document.refs) rename(*target);
  }

 private:
  static constexpr std::size_t kDigits = 8;

  void rename(common_chat_schema& schema) {
    const auto rename_all = [&](const auto& schemas) {
      for (const common_chat_schema_ptr& each : schemas) rename(*each);
    };
    if (auto* const reference = dynamic_cast<common_chat_schema_ref*>(&schema)) {
      reference->ref = names_.at(reference->ref);
    } else if (auto* const any = dynamic_cast<common_chat_schema_any_of*>(&schema)) {
      rename_all(any->children);
    } else if (auto* const all = dynamic_cast<common_chat_schema_all_of*>(&schema)) {
      rename_all(all->children);
    } else if (auto* const array = dynamic_cast<common_chat_schema_array*>(&schema)) {
      rename(*array->items);
    } else if (auto* const tuple = dynamic_cast<common_chat_schema_tuple*>(&schema)) {
      rename_all(tuple->items);
    } else if (auto* const object = dynamic_cast<common_chat_schema_object*>(&schema)) {
      for (const common_chat_schema_property& each : object->properties) rename(*each.schema);
      if (object->additional_properties != nullptr) rename(*object->additional_properties);
    }
  }

  std::unordered_map<std::string, std::string> names_;
};

/// Where the line of the next rule for free keys has its `::=`, from `at` on.
std::size_t find_key_rule(std::string_view grammar, std::size_t at) {
  constexpr std::string_view kKeyRule = "additional-k";
  for (; (at = grammar.find(kKeyRule, at)) != std::string_view::npos; ++at) {
    // A number tells rules apart that would have one name.
    const std::size_t end = grammar.find_first_not_of("0123456789", at + kKeyRule.size());
    if (end != std::string_view::npos && grammar.substr(end).starts_with(" ::=")) return end;
  }
  return std::string_view::npos;
}

/// llama.cpp lets the first character in which a free key differs from all named ones be any but
/// these. A JSON string must not have controls and lone backslashes either (RFC 8259, section 7).
void forbid_controls_in_keys(std::string& grammar) {
  constexpr std::string_view kAnyBut = "[^";
  constexpr std::string_view kControls = R"(\\\x00-\x1F\x7F)";
  std::size_t at = 0;
  while ((at = find_key_rule(grammar, at)) != std::string::npos) {
    std::size_t end = std::min(grammar.find('\n', at), grammar.size());
    while ((at = grammar.find(R"([^")", at)) < end) {
      // Before the quote: a `-` behind it is a range from it on, which forbids more.
      at += kAnyBut.size();
      grammar.insert(at, kControls);
      end += kControls.size();
    }
    at = end;
  }
}

}  // namespace

std::string schema_grammar(const json::value& schema) {
  common_chat_schema_document document =
      common_chat_schema_from_json(common_json::parse(to_json(schema)));
  const ReferenceNames names(document);
  // Below a name of its own, whatever properties are called: llama.cpp has rules of its own, and
  // takes what has no name for the whole.
  std::string grammar = build_grammar([&](const common_grammar_builder& builder) {
    builder.add_rule("root", builder.add_schema("s", *document.root));
  });
  forbid_controls_in_keys(grammar);
  return grammar;
}

}  // namespace sluice

#include "engine/llama/grammar/schema_grammar.hpp"

#include <algorithm>
#include <common/json.h>
#include <cstddef>
#include <string_view>
#include <unordered_map>

#include <common/json-schema-to-grammar.h>

namespace sluice {
namespace {

/// Renames the references of a document. llama.cpp derives the name of a rule from the path to it
/// and replaces everything but letters and digits by `-`; a rule that happens to have the name of a
/// reference is taken for its target. The new names are unique and all of one length, and the rules
/// within a target have longer names.
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

/// Finds the next rule for free keys, from `at` on, and returns the position of its `::=`.
std::size_t find_key_rule(std::string_view grammar, std::size_t at) {
  constexpr std::string_view kKeyRule = "additional-k";
  for (; (at = grammar.find(kKeyRule, at)) != std::string_view::npos; ++at) {
    // llama.cpp adds numbers to rules that would otherwise have the same name.
    const std::size_t end = grammar.find_first_not_of("0123456789", at + kKeyRule.size());
    if (end != std::string_view::npos && grammar.substr(end).starts_with(" ::=")) return end;
  }
  return std::string_view::npos;
}

/// Fixes the rules for free keys. Where a free key first differs from all named keys, llama.cpp
/// accepts any character but theirs. JSON strings must not contain control characters or lone
/// backslashes either (RFC 8259, section 7), so these are excluded too.
void forbid_controls_in_keys(std::string& grammar) {
  constexpr std::string_view kAnyBut = "[^";
  constexpr std::string_view kControls = R"(\\\x00-\x1F\x7F)";
  std::size_t at = 0;
  while ((at = find_key_rule(grammar, at)) != std::string::npos) {
    std::size_t end = std::min(grammar.find('\n', at), grammar.size());
    while ((at = grammar.find(R"([^")", at)) < end) {
      // Insert before the quote: a `-` after the quote would form a range with it, which must stay
      // intact.
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
  // The schema's rules get the prefix "s", so that they cannot collide with llama.cpp's own rules,
  // whatever the properties are called. llama.cpp takes a schema without a name for the root.
  std::string grammar = build_grammar([&](const common_grammar_builder& builder) {
    builder.add_rule("root", builder.add_schema("s", *document.root));
  });
  forbid_controls_in_keys(grammar);
  return grammar;
}

}  // namespace sluice

#include "engine/llama/schema_grammar.hpp"

#include <algorithm>
#include <common/json.h>
#include <string_view>

#include <common/json-schema-to-grammar.h>

namespace sluice {
namespace {

/// llama.cpp lets the first character in which a free key differs from all named ones be any but
/// these. A JSON string must not have controls and lone backslashes either (RFC 8259, section 7).
void forbid_controls_in_keys(std::string& grammar) {
  constexpr std::string_view kKeyRule = "additional-k ::=";
  constexpr std::string_view kAnyBut = R"([^")";
  constexpr std::string_view kControls = R"(\\\x00-\x1F\x7F)";
  for (std::size_t at = grammar.find(kKeyRule); at != std::string::npos;
       at = grammar.find(kKeyRule, at)) {
    std::size_t end = std::min(grammar.find('\n', at), grammar.size());
    while ((at = grammar.find(kAnyBut, at)) < end) {
      at += kAnyBut.size();
      grammar.insert(at, kControls);
      end += kControls.size();
    }
    at = end;
  }
}

}  // namespace

std::string schema_grammar(const json::value& schema) {
  std::string grammar = json_schema_to_grammar(common_json::parse(to_json(schema)), true);
  forbid_controls_in_keys(grammar);
  return grammar;
}

}  // namespace sluice

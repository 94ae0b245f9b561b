#pragma once

#include <cstdint>
#include <string_view>

namespace sluice {

/// The drafts of JSON Schema that are treated differently here. 06 is read as 07.
enum class SchemaDraft : std::uint8_t { draft_07, draft_2019_09, draft_2020_12 };

enum class Keyword : std::uint8_t {
  additional_items,
  additional_properties,
  all_of,
  any_of,
  condition,
  constant,
  consequence,
  contains,
  content_schema,
  definitions,
  dependencies,
  dependent_required,
  dependent_schemas,
  dynamic_ref,
  alternative,
  enumeration,
  exclusive_maximum,
  exclusive_minimum,
  format,
  items,
  max_contains,
  max_items,
  max_length,
  max_properties,
  maximum,
  min_contains,
  min_items,
  min_length,
  min_properties,
  minimum,
  multiple_of,
  negated,
  one_of,
  pattern,
  pattern_properties,
  prefix_items,
  properties,
  property_names,
  recursive_ref,
  ref,
  required,
  type,
  unevaluated_items,
  unevaluated_properties,
  unique_items,
};

/// How a keyword's value holds subschemas: the value is one subschema, or a list or an object of
/// them.
enum class SubschemaHolder : std::uint8_t { none, one, list, one_or_list, map };

/// The vocabulary that a keyword belongs to, as a bit. A meta-schema may leave vocabularies out.
enum SchemaVocabulary : std::uint8_t {
  kVocabularyCore = 1,
  kVocabularyApplicator = 2,
  kVocabularyUnevaluated = 4,
  kVocabularyValidation = 8,
  kVocabularyFormat = 16,
  kVocabularyFormatAssertion = 32,
  kVocabularyContent = 64,
};
inline constexpr std::uint8_t kStandardVocabularies =
    kVocabularyCore | kVocabularyApplicator | kVocabularyUnevaluated | kVocabularyValidation |
    kVocabularyFormat | kVocabularyContent;

struct KeywordRule {
  std::string_view name;
  Keyword keyword{};
  SubschemaHolder holder = SubschemaHolder::none;
  SchemaVocabulary vocabulary = kVocabularyCore;
  SchemaDraft first = SchemaDraft::draft_07;
  SchemaDraft last = SchemaDraft::draft_2020_12;
};

/// The keyword called `name` in `draft`. Null if there is none; the member is then an annotation.
/// Identifiers ($id, $anchor, ...) are not included: they identify a schema and say nothing about
/// instances.
const KeywordRule* find_keyword(std::string_view name, SchemaDraft draft);

}  // namespace sluice

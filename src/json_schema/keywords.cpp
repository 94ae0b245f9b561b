#include "json_schema/keywords.hpp"

#include <algorithm>
#include <array>

namespace sluice {
namespace {

using Holder = SubschemaHolder;
constexpr SchemaVocabulary kCore = kVocabularyCore;
constexpr SchemaVocabulary kApplicator = kVocabularyApplicator;
constexpr SchemaVocabulary kUnevaluated = kVocabularyUnevaluated;
constexpr SchemaVocabulary kValidation = kVocabularyValidation;
constexpr SchemaDraft k07 = SchemaDraft::draft_07;
constexpr SchemaDraft k2019 = SchemaDraft::draft_2019_09;
constexpr SchemaDraft k2020 = SchemaDraft::draft_2020_12;

// `definitions` and `dependencies` are no longer keywords in 2020-12, but its meta-schema still
// reserves them with their old meaning.
constexpr auto kKeywords = std::to_array<KeywordRule>({
    {"$defs", Keyword::definitions, Holder::map, kCore, k2019, k2020},
    {"$dynamicRef", Keyword::dynamic_ref, Holder::none, kCore, k2020, k2020},
    {"$recursiveRef", Keyword::recursive_ref, Holder::none, kCore, k2019, k2019},
    {"$ref", Keyword::ref, Holder::none, kCore, k07, k2020},
    {"additionalItems", Keyword::additional_items, Holder::one, kApplicator, k07, k2019},
    {"additionalProperties", Keyword::additional_properties, Holder::one, kApplicator, k07, k2020},
    {"allOf", Keyword::all_of, Holder::list, kApplicator, k07, k2020},
    {"anyOf", Keyword::any_of, Holder::list, kApplicator, k07, k2020},
    {"const", Keyword::constant, Holder::none, kValidation, k07, k2020},
    {"contains", Keyword::contains, Holder::one, kApplicator, k07, k2020},
    {"contentSchema", Keyword::content_schema, Holder::one, kVocabularyContent, k2019, k2020},
    {"definitions", Keyword::definitions, Holder::map, kCore, k07, k2020},
    {"dependencies", Keyword::dependencies, Holder::map, kApplicator, k07, k2020},
    {"dependentRequired", Keyword::dependent_required, Holder::none, kValidation, k2019, k2020},
    {"dependentSchemas", Keyword::dependent_schemas, Holder::map, kApplicator, k2019, k2020},
    {"else", Keyword::alternative, Holder::one, kApplicator, k07, k2020},
    {"enum", Keyword::enumeration, Holder::none, kValidation, k07, k2020},
    {"exclusiveMaximum", Keyword::exclusive_maximum, Holder::none, kValidation, k07, k2020},
    {"exclusiveMinimum", Keyword::exclusive_minimum, Holder::none, kValidation, k07, k2020},
    {"format", Keyword::format, Holder::none, kCore, k07, k2020},
    {"if", Keyword::condition, Holder::one, kApplicator, k07, k2020},
    {"items", Keyword::items, Holder::one_or_list, kApplicator, k07, k2020},
    {"maxContains", Keyword::max_contains, Holder::none, kValidation, k2019, k2020},
    {"maxItems", Keyword::max_items, Holder::none, kValidation, k07, k2020},
    {"maxLength", Keyword::max_length, Holder::none, kValidation, k07, k2020},
    {"maxProperties", Keyword::max_properties, Holder::none, kValidation, k07, k2020},
    {"maximum", Keyword::maximum, Holder::none, kValidation, k07, k2020},
    {"minContains", Keyword::min_contains, Holder::none, kValidation, k2019, k2020},
    {"minItems", Keyword::min_items, Holder::none, kValidation, k07, k2020},
    {"minLength", Keyword::min_length, Holder::none, kValidation, k07, k2020},
    {"minProperties", Keyword::min_properties, Holder::none, kValidation, k07, k2020},
    {"minimum", Keyword::minimum, Holder::none, kValidation, k07, k2020},
    {"multipleOf", Keyword::multiple_of, Holder::none, kValidation, k07, k2020},
    {"not", Keyword::negated, Holder::one, kApplicator, k07, k2020},
    {"oneOf", Keyword::one_of, Holder::list, kApplicator, k07, k2020},
    {"pattern", Keyword::pattern, Holder::none, kValidation, k07, k2020},
    {"patternProperties", Keyword::pattern_properties, Holder::map, kApplicator, k07, k2020},
    {"prefixItems", Keyword::prefix_items, Holder::list, kApplicator, k2020, k2020},
    {"properties", Keyword::properties, Holder::map, kApplicator, k07, k2020},
    {"propertyNames", Keyword::property_names, Holder::one, kApplicator, k07, k2020},
    {"required", Keyword::required, Holder::none, kValidation, k07, k2020},
    {"then", Keyword::consequence, Holder::one, kApplicator, k07, k2020},
    {"type", Keyword::type, Holder::none, kValidation, k07, k2020},
    {"unevaluatedItems", Keyword::unevaluated_items, Holder::one, kUnevaluated, k2019, k2020},
    {"unevaluatedProperties", Keyword::unevaluated_properties, Holder::one, kUnevaluated, k2019,
     k2020},
    {"uniqueItems", Keyword::unique_items, Holder::none, kValidation, k07, k2020},
});
static_assert(std::ranges::is_sorted(kKeywords, {}, &KeywordRule::name));

}  // namespace

const KeywordRule* find_keyword(std::string_view name, SchemaDraft draft) {
  const auto* const found = std::ranges::lower_bound(kKeywords, name, {}, &KeywordRule::name);
  if (found == kKeywords.end() || found->name != name) return nullptr;
  return found->first <= draft && draft <= found->last ? found : nullptr;
}

}  // namespace sluice

#include "json_schema/meta.hpp"

#include <functional>
#include <map>
#include <string>
#include <utility>

#include <boost/json/object.hpp>
#include <boost/json/string.hpp>

namespace sluice {
namespace {

// The meta-schemas that https://json-schema.org/draft/2020-12/schema and the specification's
// vocabularies consist of, without their titles, comments and defaults.
constexpr std::string_view kSchema =
    R"({"$schema":"https://json-schema.org/draft/2020-12/schema",)"
    R"("$id":"https://json-schema.org/draft/2020-12/schema","$vocabulary":{)"
    R"("https://json-schema.org/draft/2020-12/vocab/core":true,)"
    R"("https://json-schema.org/draft/2020-12/vocab/applicator":true,)"
    R"("https://json-schema.org/draft/2020-12/vocab/unevaluated":true,)"
    R"("https://json-schema.org/draft/2020-12/vocab/validation":true,)"
    R"("https://json-schema.org/draft/2020-12/vocab/meta-data":true,)"
    R"("https://json-schema.org/draft/2020-12/vocab/format-annotation":true,)"
    R"("https://json-schema.org/draft/2020-12/vocab/content":true},"$dynamicAnchor":"meta",)"
    R"("allOf":[{"$ref":"meta/core"},{"$ref":"meta/applicator"},{"$ref":"meta/unevaluated"},{)"
    R"("$ref":"meta/validation"},{"$ref":"meta/meta-data"},{"$ref":"meta/format-annotation"},)"
    R"({"$ref":"meta/content"}],"type":["object","boolean"],"properties":{"definitions":{)"
    R"("type":"object","additionalProperties":{"$dynamicRef":"#meta"}},"dependencies":{)"
    R"("type":"object","additionalProperties":{"anyOf":[{"$dynamicRef":"#meta"},{)"
    R"("$ref":"meta/validation#/$defs/stringArray"}]}},"$recursiveAnchor":{)"
    R"("$ref":"meta/core#/$defs/anchorString"},"$recursiveRef":{)"
    R"("$ref":"meta/core#/$defs/uriReferenceString"}}})";
constexpr std::string_view kCoreSchema =
    R"({"$schema":"https://json-schema.org/draft/2020-12/schema",)"
    R"("$id":"https://json-schema.org/draft/2020-12/meta/core","$vocabulary":{)"
    R"("https://json-schema.org/draft/2020-12/vocab/core":true},"$dynamicAnchor":"meta",)"
    R"("type":["object","boolean"],"properties":{"$id":{"$ref":"#/$defs/uriReferenceString",)"
    R"("pattern":"^[^#]*#?$"},"$schema":{"$ref":"#/$defs/uriString"},"$ref":{)"
    R"("$ref":"#/$defs/uriReferenceString"},"$anchor":{"$ref":"#/$defs/anchorString"},)"
    R"("$dynamicRef":{"$ref":"#/$defs/uriReferenceString"},"$dynamicAnchor":{)"
    R"("$ref":"#/$defs/anchorString"},"$vocabulary":{"type":"object","propertyNames":{)"
    R"("$ref":"#/$defs/uriString"},"additionalProperties":{"type":"boolean"}},"$comment":{)"
    R"("type":"string"},"$defs":{"type":"object","additionalProperties":{)"
    R"("$dynamicRef":"#meta"}}},"$defs":{"anchorString":{"type":"string",)"
    R"("pattern":"^[A-Za-z_][-A-Za-z0-9._]*$"},"uriString":{"type":"string","format":"uri"},)"
    R"("uriReferenceString":{"type":"string","format":"uri-reference"}}})";
constexpr std::string_view kApplicatorSchema =
    R"({"$schema":"https://json-schema.org/draft/2020-12/schema",)"
    R"("$id":"https://json-schema.org/draft/2020-12/meta/applicator","$vocabulary":{)"
    R"("https://json-schema.org/draft/2020-12/vocab/applicator":true},)"
    R"("$dynamicAnchor":"meta","type":["object","boolean"],"properties":{"prefixItems":{)"
    R"("$ref":"#/$defs/schemaArray"},"items":{"$dynamicRef":"#meta"},"contains":{)"
    R"("$dynamicRef":"#meta"},"additionalProperties":{"$dynamicRef":"#meta"},"properties":{)"
    R"("type":"object","additionalProperties":{"$dynamicRef":"#meta"}},"patternProperties":{)"
    R"("type":"object","additionalProperties":{"$dynamicRef":"#meta"},"propertyNames":{)"
    R"("format":"regex"}},"dependentSchemas":{"type":"object","additionalProperties":{)"
    R"("$dynamicRef":"#meta"}},"propertyNames":{"$dynamicRef":"#meta"},"if":{)"
    R"("$dynamicRef":"#meta"},"then":{"$dynamicRef":"#meta"},"else":{"$dynamicRef":"#meta"},)"
    R"("allOf":{"$ref":"#/$defs/schemaArray"},"anyOf":{"$ref":"#/$defs/schemaArray"},)"
    R"("oneOf":{"$ref":"#/$defs/schemaArray"},"not":{"$dynamicRef":"#meta"}},"$defs":{)"
    R"("schemaArray":{"type":"array","minItems":1,"items":{"$dynamicRef":"#meta"}}}})";
constexpr std::string_view kUnevaluatedSchema =
    R"({"$schema":"https://json-schema.org/draft/2020-12/schema",)"
    R"("$id":"https://json-schema.org/draft/2020-12/meta/unevaluated","$vocabulary":{)"
    R"("https://json-schema.org/draft/2020-12/vocab/unevaluated":true},)"
    R"("$dynamicAnchor":"meta","type":["object","boolean"],"properties":{"unevaluatedItems":{)"
    R"("$dynamicRef":"#meta"},"unevaluatedProperties":{"$dynamicRef":"#meta"}}})";
constexpr std::string_view kValidationSchema =
    R"({"$schema":"https://json-schema.org/draft/2020-12/schema",)"
    R"("$id":"https://json-schema.org/draft/2020-12/meta/validation","$vocabulary":{)"
    R"("https://json-schema.org/draft/2020-12/vocab/validation":true},)"
    R"("$dynamicAnchor":"meta","type":["object","boolean"],"properties":{"type":{"anyOf":[{)"
    R"("$ref":"#/$defs/simpleTypes"},{"type":"array","items":{"$ref":"#/$defs/simpleTypes"},)"
    R"("minItems":1,"uniqueItems":true}]},"const":true,"enum":{"type":"array","items":true},)"
    R"("multipleOf":{"type":"number","exclusiveMinimum":0},"maximum":{"type":"number"},)"
    R"("exclusiveMaximum":{"type":"number"},"minimum":{"type":"number"},"exclusiveMinimum":{)"
    R"("type":"number"},"maxLength":{"$ref":"#/$defs/nonNegativeInteger"},"minLength":{)"
    R"("$ref":"#/$defs/nonNegativeIntegerDefault0"},"pattern":{"type":"string",)"
    R"("format":"regex"},"maxItems":{"$ref":"#/$defs/nonNegativeInteger"},"minItems":{)"
    R"("$ref":"#/$defs/nonNegativeIntegerDefault0"},"uniqueItems":{"type":"boolean"},)"
    R"("maxContains":{"$ref":"#/$defs/nonNegativeInteger"},"minContains":{)"
    R"("$ref":"#/$defs/nonNegativeInteger"},"maxProperties":{)"
    R"("$ref":"#/$defs/nonNegativeInteger"},"minProperties":{)"
    R"("$ref":"#/$defs/nonNegativeIntegerDefault0"},"required":{)"
    R"("$ref":"#/$defs/stringArray"},"dependentRequired":{"type":"object",)"
    R"("additionalProperties":{"$ref":"#/$defs/stringArray"}}},"$defs":{)"
    R"("nonNegativeInteger":{"type":"integer","minimum":0},"nonNegativeIntegerDefault0":{)"
    R"("$ref":"#/$defs/nonNegativeInteger"},"simpleTypes":{"enum":["array","boolean",)"
    R"("integer","null","number","object","string"]},"stringArray":{"type":"array","items":{)"
    R"("type":"string"},"uniqueItems":true}}})";
constexpr std::string_view kMetaData =
    R"({"$schema":"https://json-schema.org/draft/2020-12/schema",)"
    R"("$id":"https://json-schema.org/draft/2020-12/meta/meta-data","$vocabulary":{)"
    R"("https://json-schema.org/draft/2020-12/vocab/meta-data":true},"$dynamicAnchor":"meta",)"
    R"("type":["object","boolean"],"properties":{"title":{"type":"string"},"description":{)"
    R"("type":"string"},"default":true,"deprecated":{"type":"boolean"},"readOnly":{)"
    R"("type":"boolean"},"writeOnly":{"type":"boolean"},"examples":{"type":"array",)"
    R"("items":true}}})";
constexpr std::string_view kFormatAnnotation =
    R"({"$schema":"https://json-schema.org/draft/2020-12/schema",)"
    R"("$id":"https://json-schema.org/draft/2020-12/meta/format-annotation","$vocabulary":{)"
    R"("https://json-schema.org/draft/2020-12/vocab/format-annotation":true},)"
    R"("$dynamicAnchor":"meta","type":["object","boolean"],"properties":{"format":{)"
    R"("type":"string"}}})";
constexpr std::string_view kContent =
    R"({"$schema":"https://json-schema.org/draft/2020-12/schema",)"
    R"("$id":"https://json-schema.org/draft/2020-12/meta/content","$vocabulary":{)"
    R"("https://json-schema.org/draft/2020-12/vocab/content":true},"$dynamicAnchor":"meta",)"
    R"("type":["object","boolean"],"properties":{"contentEncoding":{"type":"string"},)"
    R"("contentMediaType":{"type":"string"},"contentSchema":{"$dynamicRef":"#meta"}}})";
constexpr std::string_view kFormatAssertion =
    R"({"$schema":"https://json-schema.org/draft/2020-12/schema",)"
    R"("$id":"https://json-schema.org/draft/2020-12/meta/format-assertion","$vocabulary":{)"
    R"("https://json-schema.org/draft/2020-12/vocab/format-assertion":true},)"
    R"("$dynamicAnchor":"meta","type":["object","boolean"],"properties":{"format":{)"
    R"("type":"string"}}})";

std::map<std::string, json::value, std::less<>> parse_meta_schemas() {
  std::map<std::string, json::value, std::less<>> parsed;
  for (const std::string_view text :
       {kSchema, kCoreSchema, kApplicatorSchema, kUnevaluatedSchema, kValidationSchema, kMetaData,
        kFormatAnnotation, kFormatAssertion, kContent}) {
    Result<json::value> schema = parse_json(text);
    std::string uri(schema->at("$id").as_string());
    parsed.emplace(std::move(uri), *std::move(schema));
  }
  return parsed;
}

}  // namespace

const json::value* bundled_meta_schema(std::string_view uri) {
  static const std::map<std::string, json::value, std::less<>> schemas = parse_meta_schemas();
  const auto found = schemas.find(uri);
  return found == schemas.end() ? nullptr : &found->second;
}

}  // namespace sluice

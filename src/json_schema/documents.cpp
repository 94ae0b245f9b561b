#include "json_schema/documents.hpp"

#include <algorithm>
#include <ranges>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>

#include "core/text/percent_encoding.hpp"
#include "core/text/utf8.hpp"
#include "json/path.hpp"
#include "json_schema/formats/uri.hpp"
#include "json_schema/meta.hpp"

namespace sluice {
namespace {

constexpr int kInvalidParams = -32602;
constexpr std::size_t kMaxUriBytes = 4096;
constexpr std::size_t kMaxSchemaDepth = 256;

constexpr std::string_view kDialect = "https://json-schema.org/draft/2020-12/schema";
constexpr std::string_view kVocabularyPrefix = "https://json-schema.org/draft/2020-12/vocab/";

bool is_schema(const json::value& value) {
  return value.is_object() || value.is_bool();
}

/// Text for an error message, cut off if it is long.
std::string shortened(std::string_view text) {
  constexpr std::size_t kMaxInError = 100;
  if (text.size() <= kMaxInError) return std::string(text);
  const std::string_view head = text.substr(0, kMaxInError);
  return std::string(head.substr(0, complete_utf8_prefix(head))) + "...";
}

std::string in_quotes(std::string_view text) {
  return to_json_string(shortened(text));
}

/// A token of a JSON pointer (RFC 6901 section 3).
std::string escape_token(std::string_view token) {
  std::string out;
  for (const char c : shortened(token)) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

/// JSON Schema Core section 8.2.2.
bool is_anchor(std::string_view name) {
  constexpr std::string_view kFirst = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
  constexpr std::string_view kRest =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789-.";
  return !name.empty() && kFirst.contains(name.front()) &&
         name.find_first_not_of(kRest) == std::string_view::npos;
}

}  // namespace

Result<void> SchemaDocuments::add_root(const json::value& schema) {
  const Result<std::uint32_t> added = add_document(schema, "");
  if (!added) return std::unexpected(added.error());
  return {};
}

SchemaIndex SchemaDocuments::find(const json::value& schema) const {
  const auto found = index_.find(&schema);
  return found == index_.end() ? kNoSchema : found->second;
}

Result<std::uint32_t> SchemaDocuments::add_document(const json::value& schema,
                                                    std::string_view uri) {
  const auto resource = static_cast<std::uint32_t>(resources_.size());
  const auto root = static_cast<SchemaIndex>(locations_.size());
  resources_.push_back({.uri = std::string(uri), .root = root});
  by_uri_.emplace(uri, resource);
  SchemaLocation place;
  place.resource = resource;
  const Result<SchemaIndex> added = add_schema(schema, place, 0);
  if (!added) return std::unexpected(added.error());
  return resource;
}

Result<SchemaIndex> SchemaDocuments::add_schema(const json::value& schema, SchemaLocation place,
                                                std::size_t depth) {
  const auto at = static_cast<SchemaIndex>(locations_.size());
  if (locations_.size() >= options_.limits.max_subschemas) {
    return fail(kLimitReached, "invalid schema: it has more than " +
                                   std::to_string(options_.limits.max_subschemas) + " subschemas");
  }
  place.schema = &schema;
  locations_.push_back(place);
  if (!is_schema(schema)) return error(at, "", "expected a schema: an object or a boolean");
  if (depth > kMaxSchemaDepth) return error(at, "", "subschemas nest too deeply");
  index_.emplace(&schema, at);
  if (const json::object* const object = schema.if_object()) {
    if (auto read = read_identifiers(at, *object); !read) return std::unexpected(read.error());
    if (auto added = add_subschemas(at, *object, depth); !added) {
      return std::unexpected(added.error());
    }
  }
  return at;
}

Result<void> SchemaDocuments::add_subschemas(SchemaIndex at, const json::object& schema,
                                             std::size_t depth) {
  for (const auto& [name, value] : schema) {
    const KeywordRule* const rule = find_keyword(name, resource_of(at).draft);
    if (rule == nullptr || rule->holder == SubschemaHolder::none) continue;
    SchemaLocation place;
    place.resource = locations_[at].resource;
    place.parent = at;
    place.keyword = name;
    if (auto added = add_holder(place, rule->holder, value, depth + 1); !added) return added;
  }
  return {};
}

/// Skips values that are not schemas; compiling the keyword reports them.
Result<void> SchemaDocuments::add_holder(const SchemaLocation& place, SubschemaHolder holder,
                                         const json::value& value, std::size_t depth) {
  const auto add = [&](const json::value& schema, SchemaLocation where) -> Result<void> {
    if (!is_schema(schema)) return {};
    const Result<SchemaIndex> added = add_schema(schema, where, depth);
    if (!added) return std::unexpected(added.error());
    return {};
  };
  if (holder == SubschemaHolder::map) {
    if (!value.is_object()) return {};
    for (const auto& [name, schema] : value.get_object()) {
      SchemaLocation where = place;
      where.member = name;
      if (auto added = add(schema, where); !added) return added;
    }
    return {};
  }
  if (holder == SubschemaHolder::one || !value.is_array()) return add(value, place);
  const json::array& list = value.get_array();
  for (std::size_t i = 0; i < list.size(); ++i) {
    SchemaLocation where = place;
    where.index = i;
    if (auto added = add(list[i], where); !added) return added;
  }
  return {};
}

Result<void> SchemaDocuments::read_identifiers(SchemaIndex at, const json::object& schema) {
  const bool is_root = locations_[at].parent == kNoSchema;
  if (is_root) {
    if (auto read = read_dialect(at, schema); !read) return read;
  }
  // In draft 07, keywords beside a $ref are ignored.
  const bool replaced = resource_of(at).draft == SchemaDraft::draft_07 && schema.contains("$ref");
  if (!replaced || is_root) {
    if (auto read = read_id(at, schema); !read) return read;
  }
  if (resource_of(at).draft >= SchemaDraft::draft_2019_09) {
    if (auto read = read_anchor(at, schema, "$anchor"); !read) return read;
  }
  if (resource_of(at).draft >= SchemaDraft::draft_2020_12) {
    if (auto read = read_anchor(at, schema, "$dynamicAnchor"); !read) return read;
  }
  return {};
}

Result<void> SchemaDocuments::read_id(SchemaIndex at, const json::object& schema) {
  const json::value* const id = schema.if_contains("$id");
  if (id == nullptr) return {};
  if (!id->is_string()) return error(at, "$id", "expected a string");
  const std::string_view text = id->get_string();
  if (text.size() > kMaxUriBytes) return error(at, "$id", "the URI is too long");
  if (resource_of(at).draft == SchemaDraft::draft_07 && text.starts_with('#') && text.size() > 1) {
    return add_anchor(at, "$id", text.substr(1), false);
  }
  std::string uri = resolve_uri(resource_of(at).uri, text);
  if (const std::size_t hash = uri.find('#'); hash != std::string::npos) {
    if (hash + 1 != uri.size()) {
      return error(at, "$id", "it has a fragment; $anchor names a part of a document");
    }
    uri.resize(hash);
  }
  if (uri.size() > kMaxUriBytes) return error(at, "$id", "the URI is too long");

  const bool is_root = locations_[at].parent == kNoSchema;
  auto resource = static_cast<std::uint32_t>(resources_.size());
  if (is_root) resource = locations_[at].resource;
  const auto [known, added] = by_uri_.emplace(uri, resource);
  if (!added && known->second != resource) {
    // The same schema may be known by its location and repeat its URI in $id. Two different schemas
    // with one URI are ambiguous.
    const SchemaResource& other = resources_[known->second];
    if (*locations_[other.root].schema != *locations_[at].schema) {
      return error(at, "$id", "another schema has the same URI " + in_quotes(uri));
    }
  }
  if (is_root) {
    resources_[resource].uri = std::move(uri);
    return {};
  }
  SchemaResource own = resource_of(at);
  own.uri = std::move(uri);
  own.root = at;
  resources_.push_back(std::move(own));
  locations_[at].resource = resource;
  return read_dialect(at, schema);
}

Result<void> SchemaDocuments::read_anchor(SchemaIndex at, const json::object& schema,
                                          std::string_view keyword) {
  const json::value* const anchor = schema.if_contains(keyword);
  if (anchor == nullptr) return {};
  if (!anchor->is_string() || !is_anchor(anchor->get_string())) {
    return error(at, keyword, "expected a name of letters, digits, '-', '_' and '.'");
  }
  return add_anchor(at, keyword, anchor->get_string(), keyword == "$dynamicAnchor");
}

Result<void> SchemaDocuments::add_anchor(SchemaIndex at, std::string_view keyword,
                                         std::string_view name, bool dynamic) {
  if (name.size() > kMaxUriBytes) return error(at, keyword, "the name is too long");
  auto named = anchors_.find(name);
  if (named == anchors_.end()) named = anchors_.try_emplace(std::string(name)).first;
  const auto [known, added] =
      named->second.try_emplace(locations_[at].resource, Anchor{at, dynamic});
  if (!added) {
    if (known->second.schema != at) {
      return error(at, keyword, "another schema has the same name " + in_quotes(name));
    }
    known->second.dynamic |= dynamic;
  }
  return {};
}

Result<void> SchemaDocuments::read_dialect(SchemaIndex at, const json::object& schema) {
  const json::value* const dialect = schema.if_contains("$schema");
  if (dialect == nullptr) return {};
  if (!dialect->is_string()) return error(at, "$schema", "expected a string");
  std::string_view uri = dialect->get_string();
  if (uri.ends_with('#')) uri.remove_suffix(1);
  SchemaResource& own = resources_[locations_[at].resource];
  own.draft = SchemaDraft::draft_2020_12;
  own.vocabularies = kStandardVocabularies;
  if (uri == kDialect) return {};
  if (uri == "https://json-schema.org/draft/2019-09/schema") {
    own.draft = SchemaDraft::draft_2019_09;
    return {};
  }
  for (const std::string_view old :
       {"://json-schema.org/draft-07/schema", "://json-schema.org/draft-06/schema"}) {
    if (uri.starts_with("http") && uri.ends_with(old) && uri.size() - old.size() <= 5) {
      own.draft = SchemaDraft::draft_07;
      return {};
    }
  }
  return read_vocabularies(at, uri);
}

Result<void> SchemaDocuments::read_vocabularies(SchemaIndex at, std::string_view meta_schema) {
  const json::value* meta = bundled_meta_schema(meta_schema);
  if (meta == nullptr && options_.documents != nullptr) {
    const auto found = options_.documents->find(meta_schema);
    if (found != options_.documents->end()) meta = &found->second;
  }
  if (meta == nullptr || !meta->is_object()) {
    return unsupported(at, "$schema",
                       "the dialect " + in_quotes(meta_schema) + " is not supported; use " +
                           std::string(kDialect));
  }
  const json::value* const vocabularies = meta->get_object().if_contains("$vocabulary");
  if (vocabularies == nullptr || !vocabularies->is_object()) return {};
  constexpr auto kKnown = std::to_array<std::pair<std::string_view, std::uint8_t>>({
      {"core", kVocabularyCore},
      {"applicator", kVocabularyApplicator},
      {"unevaluated", kVocabularyUnevaluated},
      {"validation", kVocabularyValidation},
      {"meta-data", 0},
      {"format-annotation", kVocabularyFormat},
      {"format-assertion", kVocabularyFormat | kVocabularyFormatAssertion},
      {"content", kVocabularyContent},
  });
  std::uint8_t used = kVocabularyCore;
  for (const auto& [uri, required] : vocabularies->get_object()) {
    std::string_view name = uri;
    const auto* known = kKnown.end();
    if (name.starts_with(kVocabularyPrefix)) {
      name.remove_prefix(kVocabularyPrefix.size());
      known = std::ranges::find(kKnown, name, &std::pair<std::string_view, std::uint8_t>::first);
    }
    if (known != kKnown.end()) {
      used |= known->second;
    } else if (required.is_bool() && required.get_bool()) {
      return error(
          at, "$schema",
          "its meta-schema needs the vocabulary " + in_quotes(uri) + ", which is not known");
    }
  }
  resources_[locations_[at].resource].vocabularies = used;
  return {};
}

Result<SchemaIndex> SchemaDocuments::resolve(SchemaIndex from, std::string_view keyword,
                                             std::string_view reference) {
  if (reference.size() > kMaxUriBytes) return error(from, keyword, "the reference is too long");
  const std::string target = resolve_uri(resource_of(from).uri, reference);
  const std::string_view uri = std::string_view(target).substr(0, target.find('#'));
  const Result<std::uint32_t> resource = find_resource(uri, from, keyword);
  if (!resource) return std::unexpected(resource.error());
  const std::string_view encoded =
      uri.size() == target.size() ? "" : std::string_view(target).substr(uri.size() + 1);
  if (encoded.empty()) return resources_[*resource].root;
  std::optional<std::string> fragment = percent_decode(encoded);
  if (fragment && !is_valid_utf8(*fragment)) fragment.reset();
  if (fragment && fragment->starts_with('/')) {
    return follow_pointer(*resource, *fragment, from, keyword);
  }
  if (fragment) {
    if (const auto named = anchors_.find(*fragment); named != anchors_.end()) {
      const auto found = named->second.find(*resource);
      if (found != named->second.end()) return found->second.schema;
    }
  }
  return error(from, keyword, "there is no anchor " + in_quotes(encoded));
}

Result<std::uint32_t> SchemaDocuments::find_resource(std::string_view uri, SchemaIndex from,
                                                     std::string_view keyword) {
  if (const auto known = by_uri_.find(uri); known != by_uri_.end()) return known->second;
  if (options_.documents != nullptr) {
    const auto found = options_.documents->find(uri);
    if (found != options_.documents->end()) return add_document(found->second, uri);
  }
  if (const json::value* const meta = bundled_meta_schema(uri)) return add_document(*meta, uri);
  return unsupported(
      from, keyword,
      "the document " + in_quotes(uri) + " is not known, and documents are never fetched");
}

Result<SchemaIndex> SchemaDocuments::follow_pointer(std::uint32_t resource,
                                                    std::string_view pointer, SchemaIndex from,
                                                    std::string_view keyword) {
  const SchemaIndex start = resources_[resource].root;
  const json::value* value = locations_[start].schema;
  std::string_view rest = pointer;
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::string_view token = rest.substr(0, rest.find('/'));
    rest.remove_prefix(token.size());
    value = find_pointer_token(*value, token);
    if (value == nullptr) {
      return error(from, keyword, "there is nothing at " + in_quotes(pointer));
    }
    // If the pointer passes through a resource, references below it start from that resource.
    if (const SchemaIndex passed = find(*value); passed != kNoSchema) {
      resource = locations_[passed].resource;
    }
  }
  if (const SchemaIndex known = find(*value); known != kNoSchema) return known;
  if (!is_schema(*value)) {
    return error(from, keyword, "there is no schema at " + in_quotes(pointer));
  }
  SchemaLocation place;
  place.resource = resource;
  place.parent = start;
  place.keyword = pointers_.emplace_back(pointer.substr(1));
  return add_schema(*value, place, 1);
}

bool SchemaDocuments::has_dynamic_anchor(SchemaIndex target, std::string_view name) const {
  const auto named = anchors_.find(name);
  if (named == anchors_.end()) return false;
  const auto found = named->second.find(locations_[target].resource);
  return found != named->second.end() && found->second.schema == target && found->second.dynamic;
}

std::vector<DynamicAnchor> SchemaDocuments::dynamic_anchors(std::string_view name) const {
  std::vector<DynamicAnchor> all;
  const auto named = anchors_.find(name);
  if (named == anchors_.end()) return all;
  for (const auto& [resource, anchor] : named->second) {
    if (anchor.dynamic) all.push_back({resource, anchor.schema});
  }
  return all;
}

std::unexpected<Error> SchemaDocuments::error(SchemaIndex at, std::string_view keyword,
                                              const std::string& message) const {
  std::string where = location(at);
  if (!keyword.empty()) where.append("/").append(keyword);
  return fail(kInvalidParams, "invalid schema at " + where + ": " + message);
}

std::unexpected<Error> SchemaDocuments::unsupported(SchemaIndex at, std::string_view keyword,
                                                    const std::string& message) const {
  std::unexpected<Error> out = error(at, keyword, message);
  out.error().code = kLimitReached;
  return out;
}

std::string SchemaDocuments::location(SchemaIndex at) const {
  std::vector<SchemaIndex> path;
  for (; locations_[at].parent != kNoSchema; at = locations_[at].parent) path.push_back(at);
  // The schema that was given needs no name; other documents do.
  std::string out = at == 0 ? "#" : shortened(resource_of(at).uri) + "#";
  for (const SchemaIndex step : std::views::reverse(path)) {
    const SchemaLocation& place = locations_[step];
    out.append("/").append(shortened(place.keyword));
    if (place.member) out.append("/").append(escape_token(*place.member));
    if (place.index) out.append("/").append(std::to_string(*place.index));
  }
  return out;
}

}  // namespace sluice

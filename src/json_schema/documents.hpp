#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "json/json.hpp"
#include "json_schema/json_schema.hpp"
#include "json_schema/keywords.hpp"
#include "json_schema/program.hpp"

namespace sluice {

/// A schema with its own identity: the root of a document, or a subschema with an $id.
struct SchemaResource {
  std::string uri;  // without a fragment; absolute if the documents give an absolute URI
  SchemaIndex root = kNoSchema;
  SchemaDraft draft = SchemaDraft::draft_2020_12;
  std::uint8_t vocabularies = kStandardVocabularies;
};

/// Where a subschema is located: in its parent under `keyword`, and there under `member` or at
/// `index`.
struct SchemaLocation {
  const json::value* schema = nullptr;
  std::uint32_t resource = 0;
  SchemaIndex parent = kNoSchema;
  std::string_view keyword;  // as it is written in a JSON pointer
  std::optional<std::string_view> member;
  std::optional<std::size_t> index;
};

/// The documents that a schema consists of: the schema itself and those that its references lead
/// to. The latter must be known documents or bundled meta-schemas. This class finds every subschema
/// and its identifiers, and resolves references (JSON Schema Core sections 8 and 9). It keeps views
/// into the documents, which must outlive it.
class SchemaDocuments {
 public:
  explicit SchemaDocuments(const JsonSchemaOptions& options) : options_(options) {}

  /// Reads the schema that is to be compiled. It gets the number 0.
  Result<void> add_root(const json::value& schema);

  std::size_t size() const { return locations_.size(); }
  const SchemaLocation& place(SchemaIndex at) const { return locations_[at]; }
  const SchemaResource& resource_of(SchemaIndex at) const {
    return resources_[locations_[at].resource];
  }
  /// The number of a subschema in a document that has been read. kNoSchema if `schema` is not such
  /// a subschema.
  SchemaIndex find(const json::value& schema) const;

  /// The schema that `reference`, found in the schema `from`, refers to. May read another document.
  Result<SchemaIndex> resolve(SchemaIndex from, std::string_view keyword,
                              std::string_view reference);
  /// Whether `target` has the $dynamicAnchor `name`.
  bool has_dynamic_anchor(SchemaIndex target, std::string_view name) const;
  /// All schemas that have the $dynamicAnchor `name`, in ascending order of their resource.
  std::vector<DynamicAnchor> dynamic_anchors(std::string_view name) const;

  /// An error that says that the schema `at` is invalid at its `keyword`, which may be empty.
  std::unexpected<Error> error(SchemaIndex at, std::string_view keyword,
                               const std::string& message) const;
  /// The same of a schema that may be valid, but is not supported or too large.
  std::unexpected<Error> unsupported(SchemaIndex at, std::string_view keyword,
                                     const std::string& message) const;

 private:
  struct Anchor {
    SchemaIndex schema = kNoSchema;
    bool dynamic = false;
  };

  Result<std::uint32_t> find_resource(std::string_view uri, SchemaIndex from,
                                      std::string_view keyword);
  Result<std::uint32_t> add_document(const json::value& schema, std::string_view uri);
  Result<SchemaIndex> add_schema(const json::value& schema, SchemaLocation place,
                                 std::size_t depth);
  Result<void> add_subschemas(SchemaIndex at, const json::object& schema, std::size_t depth);
  Result<void> add_holder(const SchemaLocation& place, SubschemaHolder holder,
                          const json::value& value, std::size_t depth);
  Result<void> read_identifiers(SchemaIndex at, const json::object& schema);
  Result<void> read_id(SchemaIndex at, const json::object& schema);
  Result<void> read_anchor(SchemaIndex at, const json::object& schema, std::string_view keyword);
  Result<void> read_dialect(SchemaIndex at, const json::object& schema);
  Result<void> read_vocabularies(SchemaIndex at, std::string_view meta_schema);
  Result<void> add_anchor(SchemaIndex at, std::string_view keyword, std::string_view name,
                          bool dynamic);
  Result<SchemaIndex> follow_pointer(std::uint32_t resource, std::string_view pointer,
                                     SchemaIndex from, std::string_view keyword);
  std::string location(SchemaIndex at) const;

  JsonSchemaOptions options_;
  std::vector<SchemaLocation> locations_;
  std::vector<SchemaResource> resources_;
  std::unordered_map<const json::value*, SchemaIndex> index_;
  std::map<std::string, std::uint32_t, std::less<>> by_uri_;
  std::map<std::string, std::map<std::uint32_t, Anchor>, std::less<>> anchors_;
  std::deque<std::string> pointers_;  // the pointers of places that were found by JSON pointer
};

}  // namespace sluice

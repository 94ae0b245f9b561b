#include "server/catalog/catalog.hpp"

namespace sluice {

Result<std::shared_ptr<const Catalog>> Catalog::make(ServerDefinition definition) {
  auto catalog = std::make_shared<Catalog>(std::move(definition));
  Result<ToolSchemas> schemas = ToolSchemas::compile(catalog->definition_);
  if (!schemas) return std::unexpected(std::move(schemas.error()));
  catalog->schemas_ = std::move(*schemas);
  return catalog;
}

}  // namespace sluice

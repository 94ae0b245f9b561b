#include "server/catalog/offer.hpp"

namespace sluice {

Result<std::shared_ptr<const Offer>> Offer::make(ServerDefinition definition) {
  auto offer = std::make_shared<Offer>(std::move(definition));
  Result<ToolSchemas> schemas = ToolSchemas::compile(offer->definition_);
  if (!schemas) return std::unexpected(std::move(schemas.error()));
  offer->schemas_ = std::move(*schemas);
  return offer;
}

}  // namespace sluice

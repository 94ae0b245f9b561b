#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "core/ref_ptr.hpp"
#include "server/catalog/definition.hpp"
#include "server/catalog/feature_lists.hpp"
#include "server/catalog/result_writer.hpp"
#include "server/catalog/tool_schemas.hpp"

namespace sluice {

/// One version of what a server offers, and what is made of it once. Immutable, shared by all
/// loops; what changes while the server is served is another one.
class Offer {
 public:
  /// The Error is that of ToolSchemas::compile().
  static Result<std::shared_ptr<const Offer>> make(ServerDefinition definition);

  explicit Offer(ServerDefinition definition)
      : definition_(std::move(definition)),
        lists_(definition_),
        has_tasks_(definition_.has_tasks()) {}
  Offer(const Offer&) = delete;
  Offer& operator=(const Offer&) = delete;

  [[nodiscard]] const ServerDefinition& definition() const { return definition_; }
  [[nodiscard]] const FeatureLists& lists() const { return lists_; }
  [[nodiscard]] const ToolSchemas& schemas() const { return *schemas_; }
  /// Whether any call can become a task.
  [[nodiscard]] bool has_tasks() const { return has_tasks_; }

 private:
  ServerDefinition definition_;
  FeatureLists lists_;
  bool has_tasks_;
  std::optional<ToolSchemas> schemas_;
};

/// An offer as the requests of one loop hold it: what they refer to stays until the last of them is
/// over, and they share no counter with other loops.
class LoopOffer final : public RefCounted {
 public:
  /// `results` outlives it.
  LoopOffer(std::shared_ptr<const Offer> offer, const ResultWriter& results)
      : offer_(std::move(offer)), results_(&results) {}

  [[nodiscard]] const ServerDefinition& definition() const { return offer_->definition(); }
  [[nodiscard]] const FeatureLists& lists() const { return offer_->lists(); }
  [[nodiscard]] const ToolSchemas& schemas() const { return offer_->schemas(); }
  [[nodiscard]] bool has_tasks() const { return offer_->has_tasks(); }
  [[nodiscard]] const ResultWriter& results() const { return *results_; }

 private:
  std::shared_ptr<const Offer> offer_;
  const ResultWriter* results_;
};

}  // namespace sluice

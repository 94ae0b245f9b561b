#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "core/executor.hpp"
#include "core/ref_ptr.hpp"
#include "server/catalog/definition.hpp"
#include "server/catalog/feature_index.hpp"
#include "server/catalog/feature_lists.hpp"
#include "server/catalog/result_writer.hpp"
#include "server/catalog/tool_schemas.hpp"

namespace sluice {

/// One version of what a server offers, with its index, lists and schemas prepared. Immutable,
/// shared by all loops. A change while the server is being served makes a new Catalog.
class Catalog {
 public:
  /// The Error is that of ToolSchemas::compile().
  static Result<std::shared_ptr<const Catalog>> make(ServerDefinition definition);

  explicit Catalog(ServerDefinition definition)
      : definition_(std::move(definition)),
        index_(definition_),
        lists_(definition_),
        has_tasks_(definition_.has_tasks()) {}
  Catalog(const Catalog&) = delete;
  Catalog& operator=(const Catalog&) = delete;

  [[nodiscard]] const ServerDefinition& definition() const { return definition_; }
  [[nodiscard]] const FeatureIndex& index() const { return index_; }
  [[nodiscard]] const FeatureLists& lists() const { return lists_; }
  [[nodiscard]] const ToolSchemas& schemas() const { return *schemas_; }
  /// Whether any call can become a task.
  [[nodiscard]] bool has_tasks() const { return has_tasks_; }

 private:
  ServerDefinition definition_;
  FeatureIndex index_;
  FeatureLists lists_;
  bool has_tasks_;
  std::optional<ToolSchemas> schemas_;
};

/// A Catalog as the requests of one loop hold it. It exists until the last of them is over. Its
/// reference count is not shared with other loops.
class LoopCatalog final : public RefCounted {
 public:
  /// `results` and `loop` must outlive this object.
  LoopCatalog(std::shared_ptr<const Catalog> catalog, const ResultWriter& results, Executor& loop)
      : catalog_(std::move(catalog)), results_(&results), loop_(&loop) {}

  [[nodiscard]] const ServerDefinition& definition() const { return catalog_->definition(); }
  [[nodiscard]] const FeatureIndex& index() const { return catalog_->index(); }
  [[nodiscard]] const FeatureLists& lists() const { return catalog_->lists(); }
  [[nodiscard]] const ToolSchemas& schemas() const { return catalog_->schemas(); }
  [[nodiscard]] bool has_tasks() const { return catalog_->has_tasks(); }
  [[nodiscard]] const ResultWriter& results() const { return *results_; }
  [[nodiscard]] Executor& loop() const { return *loop_; }

 private:
  std::shared_ptr<const Catalog> catalog_;
  const ResultWriter* results_;
  Executor* loop_;
};

}  // namespace sluice

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "json/json.hpp"
#include "server/calls/pending_request.hpp"
#include "server/calls/task_record.hpp"
#include "server/catalog/definition.hpp"
#include "server/notifications/change_notifier.hpp"

namespace sluice {

/// What a `subscriptions/listen` request asks for (2026-07-28, Subscriptions).
struct SubscriptionFilter {
  bool tools = false;
  bool prompts = false;
  bool resources = false;
  std::set<std::string, std::less<>> uris = {};
  /// SEP-2663, Task Status Notifications.
  std::optional<std::set<std::string, std::less<>>> task_ids = {};

  /// -32602 for what is ill-typed, or more than Session::kMaxSubscriptions resources or tasks.
  static Result<SubscriptionFilter> decode(const json::object& params);
  /// Bytes that it takes.
  [[nodiscard]] std::size_t memory() const;
};

/// Answers `call` by keeping it open: it is acknowledged, and told of the changes that `filter`
/// names as long as its client listens. `id` is the request's. Of `tasks`, it is told how they are
/// at first as well. `memory` is the filter's. What is returned keeps itself.
std::shared_ptr<ChangeListener> listen(const std::shared_ptr<PendingRequest>& call,
                                       const RequestId& id, SubscriptionFilter filter,
                                       MemoryHold memory,
                                       std::vector<std::shared_ptr<TaskRecord>> tasks,
                                       const ServerDefinition& definition, ChangeNotifier& changes);

}  // namespace sluice

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

  /// Errors: -32602 for members of the wrong type, and for more resources or tasks than
  /// Session::kMaxSubscriptions and Session::kMaxSubscribedBytes allow.
  static Result<SubscriptionFilter> decode(const json::object& params);
  /// The memory that it takes, in bytes.
  [[nodiscard]] std::size_t memory() const;
};

/// Keeps `call` open. Acknowledges the subscription, sends the state of each of `tasks`, and then
/// notifies the client of the changes that `filter` names until it stops listening. `id` is the
/// request's. `memory` is what the filter is charged to. The listener that is returned keeps itself
/// alive for that time.
std::shared_ptr<ChangeListener> listen(const std::shared_ptr<PendingRequest>& call,
                                       const RequestId& id, SubscriptionFilter filter,
                                       MemoryHold memory,
                                       std::vector<std::shared_ptr<TaskRecord>> tasks,
                                       const ServerDefinition& definition, ChangeNotifier& changes);

}  // namespace sluice

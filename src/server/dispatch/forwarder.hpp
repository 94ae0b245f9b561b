#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "json/json.hpp"
#include "protocol/mirrored_headers.hpp"
#include "server/calls/pending_request.hpp"
#include "server/dispatch/listen.hpp"
#include "server/notifications/change_notifier.hpp"
#include "server/sessions/session.hpp"

namespace sluice {

/// A request or a notification of a client that a Forwarder handles.
struct ForwardedMessage {
  std::string_view method;
  const json::object& params;        // valid during the call
  std::shared_ptr<Session> session;  // of the client; or null
  ChangeNotifier& changes;           // reaches the client of the session; outlives the loop's work
  /// What the header fields mirror, if the message has to agree with them; valid during the call.
  const MirroredHeaders* headers = nullptr;
  /// The client's memory that a notification takes; to be kept as long as the message is.
  std::shared_ptr<void> memory = {};
};

/// Answers requests elsewhere, as a proxy does. It gets every request but pings and the methods of
/// streams and tasks, and needs no ServerDefinition of what is offered. The server has done all
/// else: it has negotiated the revision, admitted the caller, and counts the call. Called on the
/// loop of the request. A server of several loops calls it on each of them.
class Forwarder {
 public:
  virtual ~Forwarder() = default;
  /// Answers `call` now or later, with PendingRequest::answer_with_result() or fail(). If
  /// PendingRequest::may_become_task(), it may begin one first. An `initialize` has begun its
  /// session already. An Error that is returned is the answer.
  virtual Result<void> forward(const ForwardedMessage& message,
                               const std::shared_ptr<PendingRequest>& call) = 0;
  /// A subscriptions/listen, which the server itself acknowledges. Tells `listener` of the changes
  /// that `filter` names until the object that is returned is destroyed. It may be null: there will
  /// be none. PendingRequest::params() has the params. An error fails the call.
  virtual Result<std::shared_ptr<void>> listen(const SubscriptionFilter& filter,
                                               const std::shared_ptr<PendingRequest>& call,
                                               std::weak_ptr<ChangeListener> listener) = 0;
  /// How changes name the resource that a client calls `uri`; nothing if none would name it.
  [[nodiscard]] virtual std::optional<std::string> known_uri(const std::string& uri) const {
    return uri;
  }
  /// A notification in a session, other than the cancellation of a request.
  virtual void notify(const ForwardedMessage& message) = 0;
};

}  // namespace sluice

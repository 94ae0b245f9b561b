#pragma once

#include <string>
#include <string_view>

#include "client/session/client_session_options.hpp"
#include "client/session/listed_tools.hpp"
#include "client/session/server_link.hpp"
#include "json/json.hpp"
#include "protocol/revision.hpp"
#include "rpc/message.hpp"

namespace sluice {

/// Writes a client's requests and notifications, with all that a revision wants in them. Belongs to
/// its session.
class MessageWriter {
 public:
  /// `options` and `tools` outlive this. `carries_headers`: as ServerLink::carries_headers().
  MessageWriter(const ClientSessionOptions& options, const ListedTools& tools, bool carries_headers)
      : options_(&options), tools_(&tools), carries_headers_(carries_headers) {}

  struct Message {
    std::string method;
    json::object params = {};
    RequestId id = {};             // a number, as text; empty: a notification
    bool may_become_task = false;  // see RequestOptions
  };
  [[nodiscard]] OutgoingMessage write(Message message, const Revision& revision) const;

  /// Whether the header fields of a call mirror parameters.
  [[nodiscard]] bool mirrors_parameters(const Revision& revision) const {
    return revision.routing_headers && carries_headers_;
  }

 private:
  const ClientSessionOptions* options_;
  const ListedTools* tools_;
  const bool carries_headers_;
};

}  // namespace sluice

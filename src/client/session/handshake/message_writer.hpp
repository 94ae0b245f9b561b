#pragma once

#include <array>
#include <string>
#include <string_view>

#include "client/session/contract/client_session_options.hpp"
#include "client/session/contract/server_link.hpp"
#include "client/session/memory/listed_tools.hpp"
#include "json/json.hpp"
#include "protocol/revision.hpp"
#include "rpc/message.hpp"

namespace sluice {

/// Writes a client's requests and notifications, with all that a revision wants in them. Belongs to
/// its session.
class MessageWriter {
 public:
  /// `tools` outlives this. `carries_headers`: as ServerLink::carries_headers().
  MessageWriter(const ClientSessionOptions& options, const ListedTools& tools,
                bool carries_headers);

  struct Message {
    std::string method;
    const json::object& params;
    RequestId id = {};             // a number, as text; empty: a notification
    bool may_become_task = false;  // see RequestOptions
    bool wants_parts = false;      // see RequestCallbacks::on_partial_result
  };
  [[nodiscard]] OutgoingMessage write(Message message, const Revision& revision) const;

  /// Whether the header fields of a call mirror parameters.
  [[nodiscard]] bool mirrors_parameters(const Revision& revision) const {
    return revision.routing_headers && carries_headers_;
  }

 private:
  /// Appends the parameters of a message as JSON, with its progress token. In the modern era, each
  /// message names the client and its capabilities there.
  void append_params(std::string& out, const Message& message, const Revision& revision) const;

  // As JSON, because each message of the modern era has them.
  const std::string info_;
  const std::array<std::string, 4> capabilities_;  // with tasks: +1, with partial results: +2
  const ListedTools* tools_;
  const bool carries_headers_;
};

}  // namespace sluice

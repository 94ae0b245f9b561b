#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "json/json.hpp"
#include "protocol/revision.hpp"

namespace sluice {
class EventLoop;
class ServerLink;
}  // namespace sluice

namespace sluice::matrix {

class Served;

/// The client's end of a transport. Blocking and for one thread. Throws std::runtime_error if the
/// server sends something it must not, or nothing for 20 s.
class Link {
 public:
  virtual ~Link() = default;

  /// Sends a message, or several in an array.
  virtual void send(const json::value& message) = 0;
  /// Waits for the next message of the server, on whichever stream or connection it arrives.
  virtual json::value receive() = 0;
  /// Cancels the newest request by closing its connection, on transports where that is the way to
  /// cancel. Returns false if a notification is needed instead.
  virtual bool leave() { return false; }
  /// Called after `initialize` and `notifications/initialized`. Opens what is needed to receive the
  /// server's own messages.
  virtual void session_begun() {}
};

struct Transport {
  std::string_view name;
  /// Connects a client of `revision` that writes its own messages. Null: the client is one of the
  /// library's.
  std::unique_ptr<Link> (*connect)(Served& served, const Revision& revision);
  /// Whether requests of revisions with sessions belong to a session, so that the server can send
  /// requests and notifications.
  bool sessions = true;
  /// The link of a ClientSession. Null if `connect` is null too: the client is
  /// sluice::testing::Client.
  std::unique_ptr<ServerLink> (*link)(Served& served, EventLoop& loop) = nullptr;
};

std::span<const Transport> transports();

}  // namespace sluice::matrix

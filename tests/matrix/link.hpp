#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "json/json.hpp"
#include "protocol/revision.hpp"

namespace sluice::matrix {

class Served;

/// A client's end of one transport. Blocking, for one thread; throws std::runtime_error when the
/// server says what it must not, or nothing for 20 s.
class Link {
 public:
  virtual ~Link() = default;

  /// Sends a message, or several in an array.
  virtual void send(const json::value& message) = 0;
  /// The next message of the server, by whatever way it comes.
  virtual json::value receive() = 0;
  /// Gives up the newest request where leaving it is how that is done; false: a notification is.
  virtual bool leave() { return false; }
  /// After `initialize` and `notifications/initialized`: opens what is needed for the server's own
  /// messages.
  virtual void session_begun() {}
};

struct Transport {
  std::string_view name;
  /// Connects a client of that revision.
  std::unique_ptr<Link> (*connect)(Served& served, const Revision& revision);
  /// Whether requests of the session eras have a session: the server can ask and tell.
  bool sessions = true;
};

std::span<const Transport> transports();

}  // namespace sluice::matrix

#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <utility>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "fault_server.hpp"
#include "net/loop/descriptor.hpp"
#include "net/loop/event_loop.hpp"
#include "plan.hpp"

namespace sluice::faults {

/// A FaultServer's ends of its connections, and the time: a loop whose clock jumps to whatever is
/// due next. The connections are pairs of Unix sockets, whose bytes arrive when they are sent. So a
/// plan always takes the same course.
class World {
 public:
  explicit World(const Plan& plan) : server_(plan) {}

  /// A client's end of a new connection.
  Result<Descriptor> connect();
  /// Goes on until `done`, or until the time is up. False: something goes round.
  bool run(const std::function<bool()>& done, Duration at_most);

  EventLoop& loop() { return loop_; }
  [[nodiscard]] TimePoint now() const { return clock_.now(); }
  FaultServer& server() { return server_; }
  /// Connections that the client has not closed.
  [[nodiscard]] std::size_t open() const { return peers_.size(); }

 private:
  struct Peer {
    Descriptor socket;
    std::size_t seen = 0;  // bytes that are still in the socket
    std::size_t sent = 0;  // of the first step
    std::deque<std::pair<TimePoint, Step>> steps{};
  };

  /// Does what is due. Returns whether anything was.
  bool serve();
  bool hear(std::size_t number);
  bool act(std::size_t number);
  /// Gives the server's new steps their times.
  void plan_steps();

  ManualClock clock_;
  EventLoop loop_{clock_};
  FaultServer server_;
  std::map<std::size_t, Peer> peers_;
  std::size_t last_ = 0;
};

}  // namespace sluice::faults

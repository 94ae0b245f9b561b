#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/answer.hpp"
#include "client/server_address.hpp"
#include "net/loop/event_loop.hpp"

namespace sluice {

/// What one unit of a load test asks for.
struct BenchRequest {
  AnswerVia via = AnswerVia::sse;
  json::object params;
  std::string tool;  // the tool to call, for AnswerVia::mcp
};

/// The connections of a load test. Each place has a connection of its own; over WebSocket several
/// places can share one. Belongs to the loop.
class BenchTransport {
 public:
  /// `address` must outlive the transport. `connections` is at most `places`.
  BenchTransport(EventLoop& loop, const ServerAddress& address, BenchRequest request,
                 std::uint32_t slots, std::uint32_t connections);
  ~BenchTransport();
  BenchTransport(const BenchTransport&) = delete;
  BenchTransport& operator=(const BenchTransport&) = delete;

  /// Begins a unit in a slot and drops the unit that was there before.
  void begin(std::uint32_t slot, AnswerSink& sink);
  /// Tells the server to stop all units that are still running.
  void cancel_all();

 private:
  struct Slot;
  struct Connections;

  BenchRequest request_;
  std::unique_ptr<Connections> connections_;
  std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace sluice

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/calls/task_record.hpp"
#include "server/channel/reply_channel.hpp"
#include "stream/stream.hpp"

namespace sluice {

/// How a call has ended.
struct CallAnswer {
  std::string response;  // the whole JSON-RPC response
  int http_status = 200;
  TaskRecord::Ending ending = TaskRecord::Ending::result;
  std::string why = {};  // the text of what went wrong
};

/// The call as its outlet sees it.
class OutletEvents {
 public:
  virtual ~OutletEvents() = default;
  /// A stream for what the call says, on its client's memory, that only `finder` finds. Null once
  /// the call is over.
  virtual std::shared_ptr<ChunkStream> begin_stream(std::string finder) = 0;
  /// There is room again after something was not taken.
  virtual void on_outlet_writable() = 0;
  /// Nobody will hear the call's answer, and the outlet has left or is about to: its caller has
  /// gone and does not come back, or has cancelled, or what was said could not be kept.
  virtual void on_outlet_closed(DisconnectReason reason) = 0;
};

/// Where the messages of a call and its answer go: one class for each kind of call. It does not
/// keep the call; once answered it goes on by itself until the caller has everything. Belongs to
/// the call's loop.
class CallOutlet {
 public:
  virtual ~CallOutlet() = default;
  /// Whether what is said before the answer reaches anybody.
  [[nodiscard]] virtual bool carries() const = 0;
  /// A whole message. False: taken, but wait for room.
  virtual bool send(std::string_view message) = 0;
  /// The same of text as a progress notification that counts itself. Nothing: it is to come as a
  /// message.
  virtual std::optional<bool> text(std::string_view /*text*/) { return std::nullopt; }
  /// What the last of these has counted to; 0 before the first.
  [[nodiscard]] virtual std::uint64_t counted() const { return 0; }
  /// Sends what was said now instead of at the end of the loop's turn.
  virtual void flush() {}
  /// As PendingRequest::disconnect().
  virtual void disconnect(std::chrono::milliseconds /*retry*/) {}
  /// The call has ended so. It is told nothing more.
  virtual void answer(CallAnswer answer) = 0;
  /// The same, without an answer. Does nothing after an answer or another leave().
  virtual void leave() = 0;
};

}  // namespace sluice

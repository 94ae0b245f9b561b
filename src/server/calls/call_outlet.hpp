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
  std::string why = {};  // what went wrong, if anything
};

/// A call, as its outlet sees it.
class OutletEvents {
 public:
  virtual ~OutletEvents() = default;
  /// Starts a stream for the messages of the call. Its memory is charged to the call's client, and
  /// only `finder` can find it (StreamManager::start_private()). Null once the call is over.
  virtual std::shared_ptr<ChunkStream> begin_stream(std::string finder) = 0;
  /// The call may send again after send() or text() has returned false.
  virtual void on_outlet_writable() = 0;
  /// The answer of the call cannot be delivered: the caller has gone for good or has cancelled, or
  /// a message could not be kept. The outlet has closed or is about to.
  virtual void on_outlet_closed(DisconnectReason reason) = 0;
};

/// Takes the messages and the answer of a call. There is a class for each kind of call. An outlet
/// does not keep its call alive. After the answer it exists until the caller has received
/// everything. Belongs to the call's loop.
class CallOutlet {
 public:
  virtual ~CallOutlet() = default;
  /// Whether messages before the answer can reach anybody.
  [[nodiscard]] virtual bool carries() const = 0;
  /// Sends a whole JSON-RPC message. Returns false if the call should wait for on_outlet_writable()
  /// before it sends more.
  virtual bool send(std::string_view message) = 0;
  /// Sends text as a progress notification that the outlet numbers, and returns what send() would.
  /// Returns nothing if the outlet does not number notifications; the call then uses send().
  virtual std::optional<bool> text(std::string_view /*text*/) { return std::nullopt; }
  /// The number of the last of these notifications; 0 before the first.
  [[nodiscard]] virtual std::uint64_t counted() const { return 0; }
  /// Sends queued messages now instead of at the end of the loop's turn.
  virtual void flush() {}
  /// As PendingRequest::disconnect().
  virtual void disconnect(std::chrono::milliseconds /*retry*/) {}
  /// Sends the answer of the call, which has ended. The call gets no OutletEvents afterwards.
  virtual void answer(CallAnswer answer) = 0;
  /// Closes the outlet without an answer. Must not be called after answer(); a second call does
  /// nothing.
  virtual void leave() = 0;
};

}  // namespace sluice

#pragma once

#include <chrono>
#include <memory>
#include <string_view>
#include <utility>

#include "core/executor.hpp"
#include "server/calls/call_outlet.hpp"
#include "server/calls/call_request.hpp"
#include "server/sessions/session.hpp"
#include "stream/push_cursor.hpp"
#include "stream/stream_manager.hpp"

namespace sluice {

/// The outlet of a call in a session over HTTP. Its messages go to a stream that the session can
/// find. If the caller's connection breaks, the call goes on for the session's resume window, in
/// which the caller may come back (2025-11-25, Streamable HTTP).
class ResumableOutlet final : public CallOutlet,
                              public std::enable_shared_from_this<ResumableOutlet>,
                              private StreamProducer {
 public:
  ResumableOutlet(std::shared_ptr<const CallRequest> request, std::weak_ptr<OutletEvents> call,
                  std::shared_ptr<ReplyChannel> channel, std::shared_ptr<Session> session,
                  Executor& executor)
      : request_(std::move(request)),
        call_(std::move(call)),
        channel_(std::move(channel)),
        session_(std::move(session)),
        executor_(&executor) {}
  ~ResumableOutlet() override { close(); }
  ResumableOutlet(const ResumableOutlet&) = delete;
  ResumableOutlet& operator=(const ResumableOutlet&) = delete;

  /// Connects the outlet to its channel. Call it once, right after construction.
  void open();

  [[nodiscard]] bool carries() const override { return true; }
  bool send(std::string_view message) override;
  void flush() override;
  void disconnect(std::chrono::milliseconds retry) override;
  void answer(CallAnswer answer) override;
  void leave() override;

 private:
  class Sink;

  // StreamProducer
  void on_writable() override;
  void on_cancel() override;
  void on_unread() noexcept override;

  void start_stream();
  void on_disconnect(DisconnectReason reason);
  /// The connection has gone. The stream waits for another one.
  void detach();
  /// From now on it is the outlet, not the channel, that hears when the client cancels the call.
  void take_entry();
  /// Closes the outlet at `until`, or later: once nobody has read the stream for the whole resume
  /// window.
  void await_reader(TimePoint until);
  void close_outlet(DisconnectReason reason);
  void leave_session();
  void close();

  std::shared_ptr<const CallRequest> request_;
  std::weak_ptr<OutletEvents> call_;       // expired once the call is answered
  std::shared_ptr<ReplyChannel> channel_;  // null once the reply is complete or the caller has gone
  std::shared_ptr<Session> session_;
  Executor* executor_;
  std::shared_ptr<ChunkStream> stream_;
  std::unique_ptr<PushCursor> cursor_;
  std::unique_ptr<Session::Reader> reader_;  // while the cursor reads
  std::unique_ptr<Session::Call> entry_;     // while no channel can cancel the call
  Executor::TimerId reader_timer_ = 0;
  TimePoint left_at_;  // when the last reader left
};

}  // namespace sluice

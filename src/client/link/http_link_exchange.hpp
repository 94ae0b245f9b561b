#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "client/backoff.hpp"
#include "client/link/authorized_http.hpp"
#include "client/link/http_link.hpp"
#include "core/error.hpp"
#include "core/executor.hpp"
#include "net/client/http_client.hpp"
#include "net/http/sse.hpp"
#include "protocol/revision.hpp"
#include "rpc/message.hpp"

namespace sluice {

class HttpLink::Exchange final : public std::enable_shared_from_this<Exchange> {
 public:
  /// `id`: of the request that is to be answered, or empty. `lane`: that it is in, or null. The
  /// link outlives this, or detaches it.
  Exchange(HttpLink& link, std::uint64_t number, RequestId id, const Revision* revision, Lane* lane)
      : link_(&link),
        number_(number),
        lane_(lane),
        id_(std::move(id)),
        is_legacy_(revision != nullptr && revision->era == Era::legacy),
        events_({.line = link.options_.max_message, .event = link.options_.max_message}),
        backoff_(link.options_.resumption) {}
  ~Exchange() { detach(); }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// Whether a text can be the id of a session that is kept, and that of an event that is sent back
  /// to the server.
  static bool is_session_id(std::string_view text);
  static bool is_event_id(std::string_view text);

  [[nodiscard]] const RequestId& id() const { return id_; }
  /// The end of its reply is not waited for any more. Returns the lane that it was in, or null.
  Lane* leave_lane() {
    is_taken_ = true;
    return std::exchange(lane_, nullptr);
  }
  [[nodiscard]] bool is_legacy() const { return is_legacy_; }
  [[nodiscard]] bool is_standalone() const { return is_standalone_; }
  [[nodiscard]] bool is_aside() const { return id_.empty() && !is_standalone_; }
  /// A notification or an answer that the server may not have.
  [[nodiscard]] bool is_under_way_aside() const { return is_aside() && !is_taken_; }

  void keep(std::shared_ptr<void> memory) { memory_ = std::move(memory); }
  void post(HttpHeaderList headers, std::string body, std::string_view method);
  /// Reads the stream of messages that belong to no request, from its beginning or from where
  /// another one has left off.
  void listen(Reopening from);
  /// Reads the rest of an answer, from behind that event.
  void take_up(std::string last_event);
  void pause(bool is_paused) {
    is_paused_ = is_paused;
    call_.pause(is_paused);
  }
  /// Nobody is told of anything any more.
  void detach();

  // HttpReplyCallbacks
  void on_connected();
  void on_head(const HttpReplyHead& head);
  void on_sent();
  void on_body(std::string_view bytes);
  void on_complete();
  void on_failure(const Error& why);

 private:
  /// A reply of success has ended that is no stream.
  void on_success();
  /// A reply to a POST has ended that is none of success.
  void on_refused();
  void session_over();
  /// If the message was that the client is ready, it need not be waited for any more, whatever the
  /// server thinks of it.
  void on_initialized();
  /// The server offers no stream of its own, at least not now. Some never do, and say so in ways of
  /// their own.
  void stream_refused();
  /// An error of MCP that names no request, in the reply to one.
  [[nodiscard]] std::optional<Error> unaddressed_error(std::string_view text) const;
  /// A stream in place of a 202 (2025-11-25, Sending Messages to the Server).
  [[nodiscard]] bool has_nothing_to_say() const { return is_events_ && is_aside(); }

  void send(HttpClientRequest request);
  void get();

  void on_event(const SseEvent& event);
  void take_message(std::string_view text);
  /// Keeps where the stream can be resumed.
  void keep_place();
  /// Tells whoever may take up the answer, once.
  void tell_place();
  /// Whether it asks for the rest of an answer.
  [[nodiscard]] bool is_resuming() const { return is_get_ && !is_standalone_; }

  /// The answer has come: nothing but the stream's end should follow. Or an error without an id,
  /// which the answer may follow still.
  void end_soon();
  /// `why`: empty for the status of the reply.
  [[nodiscard]] Error not_resumed(std::string_view why = {}) const;
  /// Why a reply of success, which is no stream, does not answer its request.
  [[nodiscard]] std::string why_unanswered() const;
  /// The stream has ended or broken off, perhaps before its answer.
  void stream_ended(Error why);
  /// Tells why there is no answer, if one is awaited.
  void fail(const Error& why,
            void (ServerLink::Owner::*tell)(const RequestId&,
                                            const Error&) = &ServerLink::Owner::on_unanswered);
  void end();

  std::shared_ptr<void> memory_;  // of the message
  HttpLink* link_;                // null: it is over
  const std::uint64_t number_;
  Lane* lane_;
  const RequestId id_;
  const bool is_legacy_;
  SseDecoder events_;
  Backoff backoff_;
  AuthorizedHttp::Call call_;
  int status_ = 0;
  bool is_events_ = false;
  bool is_get_ = false;
  bool is_paused_ = false;
  bool is_standalone_ = false;
  bool was_open_ = false;              // the stream of events
  std::size_t refusals_ = 0;           // of the stream, in a row
  std::size_t refusals_of_event_ = 0;  // those with `last_event_`, in a row
  bool begins_session_ = false;
  bool is_probe_ = false;
  bool is_taken_ = false;  // by the server, or its session is over
  TimePoint opened_at_{};  // the stream of events
  std::string body_;
  std::string other_type_;            // of the reply, if it is not JSON
  std::string redirect_;              // where the server wants the request to go
  bool is_misdirected_ = false;       // the reply has the answer to another request
  std::optional<Error> unaddressed_;  // that a stream has brought
  bool is_last_resumption_ = false;   // for the answer that may follow it
  std::string challenge_;
  std::string session_;     // of the server that it belongs to; empty: none
  std::string last_event_;  // where the stream can be resumed
  bool is_place_told_ = true;
  bool has_unsendable_event_id_ = false;
  Executor::TimerId timer_ = 0;
};

}  // namespace sluice

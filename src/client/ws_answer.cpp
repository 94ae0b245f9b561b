#include "client/ws_answer.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "client/reply.hpp"
#include "net/http/status_codes.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

/// If no chunk comes for this long, the server may be waiting for room: it may keep fewer chunks
/// than are acknowledged at once.
constexpr auto kPause = std::chrono::milliseconds(100);

}  // namespace

void WsAnswer::begin() {
  read_on();
}

void WsAnswer::read_on() {
  port().open_websocket("/ws");
}

void WsAnswer::on_lost(const Error& why) {
  open_ = false;
  // Only requests are large, so it is the request that was refused.
  if (why.code == kMessageTooBig && !started()) {
    if (!ended()) fail({why.code, std::string(kRequestTooLarge)});
    return;
  }
  // The server refused the handshake, so trying again changes nothing.
  if (why.code >= 400 && why.code < 500) {
    if (!ended()) fail(why);
    return;
  }
  StreamAnswer::on_lost(why);
}

void WsAnswer::on_open() {
  if (ended()) return;
  open_ = true;
  awaits_pause_ = false;
  acknowledged_ = next_seq();
  if (started()) {
    port().send_text(request_text(
        "subscribe", {{"stream_id", stream_id()}, {"from_seq", next_seq()}, {"window", kWindow}}));
  } else {
    json::object params = run_params();
    params["window"] = kWindow;
    port().send_text(request_text("run", std::move(params)));
  }
  awaited_ = last_request_id();
}

void WsAnswer::on_message(std::string_view text) {
  if (ended()) return;
  const auto parsed = parse_json(text);
  const json::object* message = parsed ? parsed->if_object() : nullptr;
  if (message == nullptr) {
    fail({kInternalError, "The server sent a message that is not a JSON object"});
    return;
  }
  if (!message->contains("method")) {
    take_response(*message);
    return;
  }
  const json::value* params = message->if_contains("params");
  if (params == nullptr || !params->is_object()) return;
  const json::value* id = params->get_object().if_contains("stream_id");
  if (id == nullptr || !id->is_string() || id->get_string() != stream_id()) return;
  if (!take_chunk(params->get_object())) return;
  if (next_seq() - acknowledged_ >= acknowledge_every_) {
    acknowledge();
  } else if (!awaits_pause_) {
    await_pause();
  }
}

void WsAnswer::await_pause() {
  awaits_pause_ = true;
  next_before_pause_ = next_seq();
  port().set_timer(kPause);
}

void WsAnswer::on_timer() {
  if (!open_) {
    StreamAnswer::on_timer();
    return;
  }
  awaits_pause_ = false;
  if (next_seq() == acknowledged_) return;
  if (next_seq() == next_before_pause_) {
    // The next acknowledgements come in time for a server that keeps no more chunks than this.
    acknowledge_every_ = std::max<std::uint64_t>(1, (next_seq() - acknowledged_) / 2);
    acknowledge();
  } else {
    await_pause();
  }
}

void WsAnswer::take_response(const json::object& message) {
  const json::value* id = message.if_contains("id");
  const auto error = error_of(message);
  if (id == nullptr || !id->is_int64()) {
    if (error) fail(*error);  // the server could not parse a request
    return;
  }
  if (id->get_int64() != awaited_) return;  // a reply to an ack or an abort
  awaited_ = 0;
  if (error) {
    fail(*error);
    return;
  }
  const json::value* result = message.if_contains("result");
  if (result == nullptr || !result->is_object()) {
    fail({kInternalError, "The server sent a response without a result"});
    return;
  }
  if (!started()) take_started(result->get_object());
}

void WsAnswer::acknowledge() {
  acknowledged_ = next_seq();
  port().send_text(request_text("ack", {{"stream_id", stream_id()}, {"seq", acknowledged_}}));
}

void WsAnswer::abort() {
  if (open_) {
    port().send_text(request_text("abort", {{"stream_id", stream_id()}}));
  } else {
    StreamAnswer::abort();
  }
}

}  // namespace sluice

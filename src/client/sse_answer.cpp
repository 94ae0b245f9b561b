#include "client/sse_answer.hpp"

#include "rpc/error_codes.hpp"

namespace sluice {

void SseAnswer::begin() {
  port().send(post(request_text("run", run_params())));
}

void SseAnswer::read_on() {
  HttpCall call{.method = "GET",
                .target = "/streams/" + stream_id(),
                .headers = {{"Accept", "text/event-stream"}},
                .body = {}};
  if (next_seq() > 0) call.headers.emplace_back("Last-Event-ID", std::to_string(next_seq() - 1));
  port().send(std::move(call));
}

void SseAnswer::on_head(int status, std::string_view content_type) {
  body_.begin(status);
  events_ = SseDecoder();
  is_events_ = started() && status == 200 && content_type.starts_with("text/event-stream");
}

void SseAnswer::on_body(std::string_view bytes) {
  if (ended()) return;
  if (!is_events_) {
    if (!body_.append(bytes)) fail({kInternalError, "The server's reply is larger than 64 MiB"});
    return;
  }
  const auto fed = events_.feed(bytes, [this](const SseEvent& event) { take_event(event); });
  if (!fed && !ended()) fail(fed.error());
}

void SseAnswer::take_event(const SseEvent& event) {
  if (ended()) return;
  const auto parsed = parse_json(event.data);
  const json::object* members = parsed ? parsed->if_object() : nullptr;
  if (members == nullptr) {
    fail({kInternalError, "The server sent an event that is not a JSON object"});
    return;
  }
  // An event is either the chunk itself or the notification that carries it on other transports.
  const json::value* params = members->if_contains("params");
  if (params != nullptr && params->is_object()) members = &params->get_object();
  if (!members->contains("seq")) {
    if (const auto error = error_of(*members)) fail(*error);
    return;
  }
  take_chunk(*members);
}

void SseAnswer::on_complete() {
  if (ended()) return;
  if (!started()) {
    if (take_started(body_.parse())) read_on();
    return;
  }
  if (is_events_ || is_passing_trouble(body_.status())) {
    if (const auto wait = events_.retry_milliseconds()) {
      backoff().set_first(std::chrono::milliseconds(*wait));
    }
    retry({body_.status(),
           is_events_ ? "The event stream ended before the answer did"
                      : "The server answered with HTTP status " + std::to_string(body_.status())});
    return;
  }
  const auto result = body_.parse();
  fail(result ? Error{kInternalError, "The server did not reply with an event stream"}
              : result.error());
}

}  // namespace sluice

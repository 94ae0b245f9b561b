#include "client/poll_answer.hpp"

#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

/// How long a poll waits. It is below the usual idle timeouts of proxies.
constexpr std::int64_t kWaitMilliseconds = 25'000;

}  // namespace

void PollAnswer::begin() {
  port().send(post(request_text("run", run_params())));
}

void PollAnswer::read_on() {
  port().send(post(request_text(
      "run",
      {{"stream_id", stream_id()}, {"from_seq", next_seq()}, {"wait_ms", kWaitMilliseconds}})));
}

void PollAnswer::on_head(int status, std::string_view /*content_type*/) {
  body_.begin(status);
}

void PollAnswer::on_body(std::string_view bytes) {
  if (!body_.append(bytes)) fail({kInternalError, "The server's reply is larger than 64 MiB"});
}

void PollAnswer::on_complete() {
  if (ended()) return;
  if (!started()) {
    if (take_started(body_.parse())) read_on();
    return;
  }
  if (is_passing_trouble(body_.status())) {
    retry(
        {body_.status(), "The server answered with HTTP status " + std::to_string(body_.status())});
    return;
  }
  const auto result = body_.parse();
  if (!result) {
    fail(result.error());
    return;
  }
  const json::value* chunks = result->if_contains("chunks");
  if (chunks == nullptr || !chunks->is_array()) {
    fail({kInternalError, "The server's reply to a poll has no chunks"});
    return;
  }
  for (const json::value& chunk : chunks->get_array()) {
    const json::object* members = chunk.if_object();
    if (members == nullptr) {
      fail({kInternalError, "The server sent a chunk that is not an object"});
      return;
    }
    if (!take_chunk(*members)) return;
  }
  read_on();
}

}  // namespace sluice

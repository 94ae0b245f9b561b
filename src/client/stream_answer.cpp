#include "client/stream_answer.hpp"

#include <utility>

#include "json/members.hpp"
#include "rpc/error_codes.hpp"
#include "stream/stream_error.hpp"

namespace sluice {
namespace {

std::optional<std::int64_t> integer_at(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  if (value == nullptr || !value->is_int64()) return std::nullopt;
  return value->get_int64();
}

std::optional<double> number_at(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return value->to_number<double>();
}

}  // namespace

AnswerEnd decode_end(const json::object& members) {
  AnswerEnd end;
  end.finish_reason = text_at(members, "finish_reason");
  if (end.finish_reason == "cancelled") end.outcome = AnswerEnd::Outcome::cancelled;
  if (const json::object* usage = object_at(members, "usage")) {
    end.prompt_tokens = integer_at(*usage, "prompt_tokens");
    end.cached_tokens = integer_at(*usage, "cached_tokens");
    end.completion_tokens = integer_at(*usage, "completion_tokens");
  }
  if (const json::object* timings = object_at(members, "timings")) {
    end.queue_ms = number_at(*timings, "queue_ms");
    end.prefill_ms = number_at(*timings, "prefill_ms");
    end.decode_ms = number_at(*timings, "decode_ms");
  }
  if (auto error = error_of(members)) {
    end.outcome = AnswerEnd::Outcome::failed;
    end.error = *std::move(error);
  }
  return end;
}

StreamAnswer::StreamAnswer(AnswerRequest request, AnswerPort& port, AnswerSink& sink)
    : request_(std::move(request)),
      port_(&port),
      sink_(&sink),
      backoff_(request_.backoff),
      last_request_id_(request_.first_id - 1) {}

void StreamAnswer::start() {
  begin();
}

void StreamAnswer::cancel() {
  if (ended_ || cancelled_) return;
  cancelled_ = true;
  if (started()) abort();
}

void StreamAnswer::on_lost(const Error& why) {
  if (!ended_) retry(why);
}

void StreamAnswer::on_timer() {
  if (!ended_) read_on();
}

void StreamAnswer::abort() {
  port_->send_aside(post(request_text("abort", {{"stream_id", stream_id_}})));
}

bool StreamAnswer::take_started(const Result<json::object>& result) {
  if (!result) {
    fail(result.error());
    return false;
  }
  stream_id_ = text_at(*result, "stream_id");
  if (stream_id_.empty()) {
    fail({kInternalError, "The server did not start a stream: its reply has no stream_id"});
    return false;
  }
  if (cancelled_) abort();
  return true;
}

bool StreamAnswer::take_chunk(const json::object& chunk) {
  if (ended_) return false;
  const auto seq = integer_at(chunk, "seq");
  if (!seq || *seq < 0) {
    // The error for a reader that loses its place has no sequence number.
    const auto error = error_of(chunk);
    fail(error ? *error
               : Error{kInternalError, "The server sent a chunk without a sequence number"});
    return false;
  }
  if (static_cast<std::uint64_t>(*seq) < next_seq_) return true;
  if (static_cast<std::uint64_t>(*seq) > next_seq_) {
    fail({kInternalError, "Chunks are missing: expected seq " + std::to_string(next_seq_) +
                              ", got " + std::to_string(*seq)});
    return false;
  }
  ++next_seq_;
  backoff_.reset();
  using Kind = AnswerDelta::Kind;
  for (const auto& [name, kind] :
       {std::pair("reasoning", Kind::reasoning), std::pair("delta", Kind::text)}) {
    if (const auto text = text_at(chunk, name); !text.empty()) sink_->on_delta({kind, text});
  }
  if (const json::value* const call = chunk.if_contains("tool_call")) {
    sink_->on_delta({Kind::tool_call, to_json(*call)});
  }
  const json::value* last = chunk.if_contains("end");
  if (last == nullptr || !last->is_bool() || !last->get_bool()) return true;
  AnswerEnd end = decode_end(chunk);
  if (cancelled_) end.outcome = AnswerEnd::Outcome::cancelled;
  finish(end);
  return false;
}

void StreamAnswer::fail(const Error& error) {
  AnswerEnd end;
  end.outcome =
      is_passing_trouble(error.code) ? AnswerEnd::Outcome::unreachable : AnswerEnd::Outcome::failed;
  if (cancelled_) end.outcome = AnswerEnd::Outcome::cancelled;
  end.error = error;
  if (started() && (error.code == kStreamNotFound || error.code == kStreamExpired)) {
    end.error.message =
        "The server no longer has this answer: it was restarted, or the answer has expired; ask "
        "again";
  }
  finish(end);
}

void StreamAnswer::retry(const Error& why) {
  port_->close();
  // Before the id is known, repeating `run` could start a second answer, so it is not repeated.
  const auto wait = started() ? backoff_.next() : std::nullopt;
  if (cancelled_ || !wait) {
    AnswerEnd end;
    end.outcome = cancelled_ ? AnswerEnd::Outcome::cancelled : AnswerEnd::Outcome::unreachable;
    end.error = why;
    finish(end);
    return;
  }
  sink_->on_retry(why, *wait);
  port_->set_timer(*wait);
}

void StreamAnswer::finish(const AnswerEnd& end) {
  if (ended_) return;
  ended_ = true;
  port_->close();
  sink_->on_end(end);
}

std::string StreamAnswer::request_text(std::string_view method, json::object params) {
  const json::object message{{"jsonrpc", "2.0"},
                             {"id", ++last_request_id_},
                             {"method", method},
                             {"params", std::move(params)}};
  return to_json(message);
}

HttpCall StreamAnswer::post(std::string body) const {
  return {.method = "POST",
          .target = "/mcp",
          .headers = {{"Content-Type", "application/json"}, {"Accept", "application/json"}},
          .body = std::move(body)};
}

json::object StreamAnswer::run_params() {
  json::object params = std::move(request_.params);
  params["stream"] = true;
  return params;
}

}  // namespace sluice

#include "fault.hpp"

#include <algorithm>

namespace sluice::faults {
namespace {

const std::vector<Transport> kAll(std::begin(kTransports), std::end(kTransports));
const std::vector<Transport> kHttp = {Transport::http};
const std::vector<Transport> kSse = {Transport::sse};
const std::vector<Transport> kRefusing = {Transport::http, Transport::sse};
const std::vector<Transport> kSocket = {Transport::websocket};
const std::vector<Transport> kLines = {Transport::lines};
/// HTTP with SSE is older than the modern era.
const std::vector<Transport> kModern = {Transport::http, Transport::websocket, Transport::lines};
const std::vector<Transport> kOpenings = {Transport::sse, Transport::websocket};
const std::vector<Transport> kStreams = {Transport::sse, Transport::websocket, Transport::lines};

/// The rows say: kind, name, transports, legacy, modern, connecting, calling, effect, is_shared,
/// texts.
const std::vector<Fault>& table() {
  using enum Effect;
  static const std::vector<Fault> kTable = {
      {Kind::none, "none", kAll, 1, 1, 1, 1, answered, false, {}},
      {Kind::silent, "silent", kAll, 1, 1, 1, 1, failed, false, {"silent too long"}},
      {Kind::drip, "drip", kAll, 1, 1, 1, 1, answered, false, {}},
      {Kind::late, "late", kAll, 1, 1, 0, 1, failed, true, {"too long"}},
      {Kind::duplicate, "duplicate", kAll, 1, 1, 1, 1, answered, false, {}},
      {Kind::unknown_before, "unknown_before", kAll, 1, 1, 1, 1, answered, false, {}},
      {Kind::unknown_only, "unknown_only", kHttp, 1, 1, 1, 1, failed, false, {"another request"}},
      {Kind::unknown_only, "unknown_only", kStreams, 1, 1, 1, 1, failed, false, {"too long"}},
      {Kind::quoted_id, "quoted_id", kHttp, 1, 1, 1, 1, failed, false, {"another request"}},
      {Kind::quoted_id, "quoted_id", kStreams, 1, 1, 1, 1, failed, false, {"silent too long"}},
      {Kind::other_id, "other_id", kHttp, 1, 1, 0, 1, failed, false, {"another request"}},
      {Kind::reordered, "reordered", kStreams, 1, 1, 0, 1, answered, false, {}},
      {Kind::error, "error", kAll, 1, 1, 1, 1, failed, false, {kRefusal}},
      {Kind::odd_error, "odd_error", kAll, 1, 1, 1, 1, failed, false, {"without a message"}},
      {Kind::no_result, "no_result", kAll, 1, 1, 1, 1, failed, false, {"cannot be read"}},
      {Kind::result_array, "result_array", kAll, 1, 1, 1, 1, failed, false, {"no object"}},
      {Kind::wrong_version, "wrong_version", kAll, 1, 1, 1, 1, failed, false, {"cannot be read"}},
      {Kind::truncated_json, "truncated_json", kAll, 1, 1, 1, 1, failed, false, {"cannot be read"}},
      {Kind::not_json, "not_json", kHttp, 1, 1, 1, 1, failed, false, {"cannot be read"}},
      {Kind::not_json, "not_json", kStreams, 1, 1, 1, 1, failed, false, {"cannot be read"}},
      {Kind::invalid_utf8, "invalid_utf8", kAll, 1, 1, 1, 1, failed, true, {"UTF-8"}},
      {Kind::nul, "nul", kAll, 1, 1, 1, 1, failed, false, {"cannot be read"}},
      {Kind::deep, "deep", kAll, 1, 1, 1, 1, failed, false, {"cannot be read"}},
      {Kind::array, "array", kAll, 1, 1, 1, 1, either, false, {"cannot be read"}},
      {Kind::too_long, "too_long", kAll, 1, 1, 1, 1, failed, true, {"longer than"}},
      {Kind::many_notifications, "many_notifications", kAll, 1, 1, 1, 1, answered, false, {}},
      {Kind::hostile_questions, "hostile_questions", kAll, 1, 1, 1, 1, answered, false, {}},
      {Kind::many_questions, "many_questions", kAll, 1, 1, 1, 1, answered, false, {}},
      {Kind::odd_progress, "odd_progress", kAll, 1, 1, 1, 1, answered, false, {}},
      {Kind::endless_rounds, "endless_rounds", kModern, 0, 1, 0, 1, failed, false, {"more input"}},
      {Kind::many_inputs, "many_inputs", kModern, 0, 1, 0, 1, failed, false, {"at once"}},

      {Kind::cut_end,
       "cut_end",
       kAll,
       1,
       1,
       1,
       1,
       either,
       true,
       {"closed the connection", "stream ended before", "ended the event stream", "cannot be read",
        "without an answer"}},
      {Kind::cut_reset, "cut_reset", kAll, 1, 1, 1, 1, either, true, {"reset", "stream ended"}},
      {Kind::cut_silent, "cut_silent", kAll, 1, 1, 1, 1, either, true, {"too long"}},

      {Kind::opening_drip, "opening_drip", kOpenings, 1, 1, 1, 0, answered, false, {}},
      {Kind::opening_cut_end,
       "opening_cut_end",
       kOpenings,
       1,
       1,
       1,
       0,
       failed,
       false,
       {"closed the connection", "ended the event stream"}},
      {Kind::opening_cut_reset,
       "opening_cut_reset",
       kOpenings,
       1,
       1,
       1,
       0,
       failed,
       false,
       {"reset"}},
      {Kind::opening_cut_silent,
       "opening_cut_silent",
       kSse,
       1,
       0,
       1,
       0,
       failed,
       false,
       {"silent too long"}},
      {Kind::opening_cut_silent,
       "opening_cut_silent",
       kSocket,
       1,
       1,
       1,
       0,
       failed,
       false,
       {"not answer the WebSocket handshake", "silent too long"}},
      {Kind::listening_drip, "listening_drip", kHttp, 1, 0, 1, 0, answered, false, {}},
      {Kind::listening_cut_end, "listening_cut_end", kHttp, 1, 0, 1, 0, answered, false, {}},
      {Kind::listening_cut_reset, "listening_cut_reset", kHttp, 1, 0, 1, 0, answered, false, {}},
      {Kind::listening_cut_silent, "listening_cut_silent", kHttp, 1, 0, 1, 0, answered, false, {}},
      // The refusal's own texts are right too.
      {Kind::refusal_drip, "refusal_drip", kRefusing, 1, 1, 1, 1, failed, false, {}},
      {Kind::refusal_cut_end,
       "refusal_cut_end",
       kRefusing,
       1,
       1,
       1,
       1,
       failed,
       false,
       {"closed the connection", "stream ended before", "ended the event stream"}},
      {Kind::refusal_cut_reset,
       "refusal_cut_reset",
       kRefusing,
       1,
       1,
       1,
       1,
       failed,
       false,
       {"reset"}},
      {Kind::refusal_cut_silent,
       "refusal_cut_silent",
       kRefusing,
       1,
       1,
       1,
       1,
       failed,
       false,
       {"too long"}},
      {Kind::refusal_drip, "refusal_drip", kSocket, 1, 1, 1, 0, failed, false, {}},
      {Kind::refusal_cut_end,
       "refusal_cut_end",
       kSocket,
       1,
       1,
       1,
       0,
       failed,
       false,
       {"closed the connection"}},
      {Kind::refusal_cut_reset, "refusal_cut_reset", kSocket, 1, 1, 1, 0, failed, false, {"reset"}},
      {Kind::refusal_cut_silent,
       "refusal_cut_silent",
       kSocket,
       1,
       1,
       1,
       0,
       failed,
       false,
       {"not answer the WebSocket handshake", "silent too long"}},

      {Kind::status, "status", kHttp, 1, 1, 1, 1, failed, false, {"answers with HTTP "}},
      {Kind::unavailable, "unavailable", kHttp, 1, 1, 1, 1, failed, false, {"with HTTP 503"}},
      {Kind::redirect, "redirect", kHttp, 1, 1, 1, 1, failed, false, {"redirects to"}},
      {Kind::redirect_loop, "redirect_loop", kHttp, 1, 1, 1, 1, failed, false, {"redirects to"}},
      {Kind::html, "html", kHttp, 1, 1, 1, 1, failed, false, {"text/html"}},
      {Kind::gzip, "gzip", kHttp, 1, 1, 1, 1, failed, false, {"gzip"}},
      {Kind::empty, "empty", kHttp, 1, 1, 1, 1, failed, false, {"without an answer"}},
      {Kind::accepted, "accepted", kHttp, 1, 1, 1, 1, failed, false, {"without an answer"}},
      {Kind::empty_events, "empty_events", kHttp, 1, 1, 1, 1, failed, false, {"stream ended"}},
      {Kind::bad_chunk, "bad_chunk", kHttp, 1, 1, 1, 1, failed, false, {"chunk"}},
      {Kind::huge_header, "huge_header", kHttp, 1, 1, 1, 1, failed, false, {"not valid HTTP"}},
      {Kind::many_headers, "many_headers", kHttp, 1, 1, 1, 1, failed, false, {"not valid HTTP"}},
      {Kind::interim_storm, "interim_storm", kHttp, 1, 1, 1, 1, failed, false, {"interim"}},
      {Kind::few_interims, "few_interims", kHttp, 1, 1, 1, 1, answered, false, {}},
      {Kind::chunk_extensions, "chunk_extensions", kHttp, 1, 1, 1, 1, answered, false, {}},
      {Kind::garbage, "garbage", kHttp, 1, 1, 1, 1, failed, false, {"not valid HTTP"}},
      {Kind::no_end_of_stream, "no_end_of_stream", kHttp, 1, 1, 1, 1, answered, false, {}},
      {Kind::answer_on_get, "answer_on_get", kHttp, 1, 0, 0, 1, answered, false, {}},
      {Kind::answer_only_on_get,
       "answer_only_on_get",
       kHttp,
       1,
       0,
       0,
       1,
       failed,
       false,
       {"without an answer"}},
      {Kind::break_and_resume, "break_and_resume", kHttp, 1, 0, 0, 1, answered, false, {}},
      {Kind::resume_duplicates, "resume_duplicates", kHttp, 1, 0, 0, 1, answered, false, {}},
      {Kind::resume_refused, "resume_refused", kHttp, 1, 0, 0, 1, failed, false, {"be resumed"}},
      {Kind::resume_endless,
       "resume_endless",
       kHttp,
       1,
       0,
       0,
       1,
       failed,
       false,
       {"stream ended before", "silent too long", "reset", "closed the connection"}},
      {Kind::retry_absurd, "retry_absurd", kHttp, 1, 0, 0, 1, failed, false, {"silent too long"}},
      {Kind::retry_zero, "retry_zero", kHttp, 1, 0, 0, 1, answered, false, {}},
      {Kind::forgotten_once, "forgotten_once", kHttp, 1, 0, 0, 1, answered, false, {}},
      {Kind::forgotten_always,
       "forgotten_always",
       kHttp,
       1,
       0,
       0,
       1,
       failed,
       false,
       {"forgotten the session again"}},
      {Kind::session_changes, "session_changes", kHttp, 1, 0, 0, 1, answered, false, {}},
      {Kind::odd_session_id, "odd_session_id", kHttp, 1, 0, 1, 0, answered, false, {}},
      {Kind::double_reply,
       "double_reply",
       kHttp,
       1,
       1,
       1,
       1,
       either,
       true,
       {"another request", "cannot be read", "not valid HTTP"}},
      {Kind::odd_event_ids,
       "odd_event_ids",
       kHttp,
       1,
       0,
       0,
       1,
       either,
       false,
       {"Last-Event-ID", "another request"}},

      {Kind::no_endpoint, "no_endpoint", kSse, 1, 0, 1, 0, failed, false, {"silent too long"}},
      {Kind::other_origin, "other_origin", kSse, 1, 0, 1, 0, failed, false, {"another origin"}},
      {Kind::bad_endpoint, "bad_endpoint", kSse, 1, 0, 1, 0, failed, false, {"where messages go"}},
      {Kind::two_endpoints, "two_endpoints", kSse, 1, 0, 1, 0, answered, false, {}},
      {Kind::html, "html", kSse, 1, 0, 1, 0, failed, false, {"text/html"}},
      {Kind::redirect, "redirect", kSse, 1, 0, 1, 0, failed, false, {"redirects to"}},
      {Kind::post_status, "post_status", kSse, 1, 0, 1, 1, failed, false, {"answers with HTTP "}},
      {Kind::post_reset, "post_reset", kSse, 1, 0, 1, 1, failed, false, {"reset"}},
      {Kind::post_silent, "post_silent", kSse, 1, 0, 1, 1, answered, false, {}},

      {Kind::status, "status", kSocket, 1, 1, 1, 0, failed, false, {"instead of a WebSocket"}},
      {Kind::bad_accept, "bad_accept", kSocket, 1, 1, 1, 0, failed, false, {"wrongly"}},
      {Kind::unoffered_extension,
       "unoffered_extension",
       kSocket,
       1,
       1,
       1,
       0,
       failed,
       false,
       {"not offered"}},
      {Kind::masked, "masked", kSocket, 1, 1, 1, 1, failed, true, {"mask"}},
      {Kind::reserved_bits, "reserved_bits", kSocket, 1, 1, 1, 1, failed, true, {"reserved"}},
      {Kind::lone_continuation,
       "lone_continuation",
       kSocket,
       1,
       1,
       1,
       1,
       failed,
       true,
       {"continuation"}},
      {Kind::close_1011, "close_1011", kSocket, 1, 1, 1, 1, failed, true, {"1011", "out of order"}},
      {Kind::bad_close_code, "bad_close_code", kSocket, 1, 1, 1, 1, failed, true, {"close"}},
      {Kind::binary, "binary", kSocket, 1, 1, 1, 1, failed, false, {"binary"}},
      {Kind::ping_flood, "ping_flood", kSocket, 1, 1, 1, 1, answered, false, {}},
      {Kind::fragments, "fragments", kSocket, 1, 1, 1, 1, answered, false, {}},

      {Kind::blank_lines, "blank_lines", kLines, 1, 1, 1, 1, answered, false, {}},
  };
  return kTable;
}

}  // namespace

std::string_view name_of(Transport transport) {
  switch (transport) {
    case Transport::http:
      return "http";
    case Transport::sse:
      return "sse";
    case Transport::websocket:
      return "websocket";
    case Transport::lines:
      return "lines";
  }
  return {};
}

std::string_view name_of(Place place) {
  switch (place) {
    case Place::answer:
      return "answer";
    case Place::event_head:
      return "event_head";
    case Place::opening:
      return "opening";
    case Place::listening:
      return "listening";
    case Place::refusal:
      return "refusal";
  }
  return {};
}

bool is_cut(Kind manner) {
  return manner == Kind::cut_end || manner == Kind::cut_reset || manner == Kind::cut_silent;
}

Kind manner_of(Kind kind, Place place) {
  using enum Kind;
  static constexpr Kind kOpeningKinds[] = {opening_drip, opening_cut_end, opening_cut_reset,
                                           opening_cut_silent};
  static constexpr Kind kListeningKinds[] = {listening_drip, listening_cut_end, listening_cut_reset,
                                             listening_cut_silent};
  static constexpr Kind kRefusalKinds[] = {refusal_drip, refusal_cut_end, refusal_cut_reset,
                                           refusal_cut_silent};
  std::span<const Kind> kinds;
  if (place == Place::opening) kinds = kOpeningKinds;
  if (place == Place::listening) kinds = kListeningKinds;
  if (place == Place::refusal) kinds = kRefusalKinds;
  const auto found = std::ranges::find(kinds, kind);
  return found == kinds.end() ? none : kManners[found - kinds.begin()];
}

bool is_refusal(Kind kind) {
  using enum Kind;
  static constexpr Kind kRefusals[] = {status, unavailable, redirect,     html,       gzip,
                                       empty,  accepted,    empty_events, post_status};
  return std::ranges::count(kRefusals, kind) > 0;
}

std::span<const Fault> all_faults() {
  return table();
}

const Fault& fault_of(Kind kind) {
  return *std::ranges::find(table(), kind, &Fault::kind);
}

}  // namespace sluice::faults

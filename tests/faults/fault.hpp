#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace sluice::faults {

enum class Transport : std::uint8_t { http, sse, websocket, lines };
inline constexpr Transport kTransports[] = {Transport::http, Transport::sse, Transport::websocket,
                                            Transport::lines};
std::string_view name_of(Transport transport);

/// Characters of two, three and four bytes, which every text of the server has.
inline constexpr std::string_view kCharacters = "ñ語😀";
/// The message of Kind::error.
inline constexpr std::string_view kRefusal = "the server refuses: ñ語😀.";

/// What the server does wrong with one request. What is not said to be otherwise is done right.
enum class Kind : std::uint8_t {
  none,
  // Messages.
  silent,
  drip,
  late,
  duplicate,
  unknown_before,
  unknown_only,
  quoted_id,
  other_id,
  reordered,
  error,
  odd_error,
  no_result,
  result_array,
  wrong_version,
  truncated_json,
  not_json,
  invalid_utf8,
  nul,
  deep,
  array,
  too_long,
  many_notifications,
  hostile_questions,
  many_questions,
  odd_progress,
  endless_rounds,
  many_inputs,
  // Bytes, cut off at any of them.
  cut_end,
  cut_reset,
  cut_silent,
  // The same with bytes that are no answer. With what a connection opens:
  opening_drip,
  opening_cut_end,
  opening_cut_reset,
  opening_cut_silent,
  // The stream of messages that belong to no request:
  listening_drip,
  listening_cut_end,
  listening_cut_reset,
  listening_cut_silent,
  // A refusal, or what else a reply without a message is:
  refusal_drip,
  refusal_cut_end,
  refusal_cut_reset,
  refusal_cut_silent,
  // HTTP.
  status,
  unavailable,
  redirect,
  redirect_loop,
  html,
  gzip,
  empty,
  accepted,
  empty_events,
  bad_chunk,
  huge_header,
  many_headers,
  interim_storm,
  few_interims,
  chunk_extensions,
  garbage,
  no_end_of_stream,
  answer_on_get,
  answer_only_on_get,
  break_and_resume,
  resume_duplicates,
  resume_refused,
  resume_endless,
  retry_absurd,
  retry_zero,
  forgotten_once,
  forgotten_always,
  session_changes,
  double_reply,
  odd_event_ids,
  odd_session_id,
  // HTTP with SSE.
  no_endpoint,
  other_origin,
  bad_endpoint,
  two_endpoints,
  post_status,
  post_reset,
  post_silent,
  // WebSocket.
  bad_accept,
  unoffered_extension,
  masked,
  reserved_bits,
  lone_continuation,
  close_1011,
  bad_close_code,
  binary,
  ping_flood,
  fragments,
  // Lines.
  blank_lines,
};

/// Bytes of a server that belong together. Each place is dripped and cut by itself.
enum class Place : std::uint8_t {
  answer,
  event_head,  // of an answer that is a stream of events: all before its body
  opening,     // a WebSocket's handshake; the head and the first event of HTTP with SSE
  listening,   // the reply to the GET for messages that belong to no request
  refusal,
};
inline constexpr Place kPlaces[] = {Place::answer, Place::event_head, Place::opening,
                                    Place::listening, Place::refusal};
std::string_view name_of(Place place);

/// The faults of bytes, which strike at every place.
inline constexpr Kind kManners[] = {Kind::drip, Kind::cut_end, Kind::cut_reset, Kind::cut_silent};
bool is_cut(Kind manner);
/// Which of kManners a fault does to this place, other than an answer; or none.
Kind manner_of(Kind kind, Place place);

/// What a correct client concludes.
enum class Effect : std::uint8_t {
  answered,  // what it would conclude without the fault
  failed,    // an error that names the fault
  either,    // the one or the other, by where the fault strikes
};

/// A fault, where it is possible, and what follows.
struct Fault {
  Kind kind;
  std::string_view name;
  std::vector<Transport> transports;
  bool legacy;  // in which eras
  bool modern;
  bool connecting;  // to which requests: the one that connects, and calls
  bool calling;
  Effect effect;
  /// Other requests on the connection suffer too. Over HTTP, there is one for each request.
  bool is_shared;
  std::vector<std::string_view> texts;  // the error has one of them
};

/// All faults; the first is none.
std::span<const Fault> all_faults();
const Fault& fault_of(Kind kind);
/// Whether it is a reply without a message that faults of Place::refusal drip and cut.
bool is_refusal(Kind kind);

}  // namespace sluice::faults

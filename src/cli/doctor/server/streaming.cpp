// Event streams: whether they arrive as they are sent, through whatever is in between.

#include <array>
#include <utility>

#include "cli/doctor/server/examination.hpp"
#include "cli/doctor/server/http_rules.hpp"
#include "cli/terminal/terminal.hpp"
#include "json/members.hpp"
#include "net/http/http_types.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

constexpr Duration kStreamPatience = std::chrono::seconds(3);
constexpr std::string_view kSubscriptionKey = "io.modelcontextprotocol/subscriptionId";
constexpr std::string_view kHeldBack =
    "Send the head and the first event at once. If the server does, a proxy holds the stream back: "
    "send X-Accel-Buffering: no, switch its buffering off, and do not compress event streams";

Ask get_stream(const Examination& examination, const LegacyEra& era) {
  Ask ask = examination.notification(era, "");
  ask.method = "GET";
  ask.body.clear();
  remove_field(ask, "Content-Type");
  set_field(ask, "Accept", "text/event-stream");
  ask.until = Until::first_bytes;
  ask.patience = kStreamPatience;
  return ask;
}

/// The stream that `request` asks for does not arrive.
Verdict unopened(const std::string& request, const Error& why) {
  if (why.code == kLimitReached) return Verdict::unanswered(why);
  return Verdict::fail(request + ": " + why.message, std::string(kHeldBack));
}

std::optional<Verdict> check_standalone_stream(Examination& examination) {
  const LegacyEra* const era = examination.legacy_era();
  if (era == nullptr) return {};
  Result<Reply> reply = examination.ask(get_stream(examination, *era));
  if (!reply) return unopened("GET", reply.error());
  if (reply->status == 405) return Verdict::ok("HTTP 405: there is no such stream");
  if (reply->status / 100 != 2 || !reply->is_event_stream()) {
    const std::string_view type = reply->header("Content-Type");
    const std::string what = type.empty() ? std::string() : ", " + std::string(type);
    return Verdict::fail(seen(*reply) + " to GET" + what,
                         "Open an event stream, or answer 405 Method Not Allowed");
  }
  std::string found = "the head arrives after " + in_milliseconds(reply->head_after);
  if (reply->body_after) {
    found.append(", the first bytes after ").append(in_milliseconds(*reply->body_after));
  } else if (reply->is_whole) {
    examination.stream = *std::move(reply);
    return Verdict::warn("the stream ends at once", "Keep it open, or answer 405");
  }
  examination.stream = *std::move(reply);
  return Verdict::ok(found);
}

std::optional<Verdict> check_listen(Examination& examination) {
  if (!examination.is_modern) return {};
  Ask ask = examination.modern("subscriptions/listen", {{"notifications",
                                                         {{"toolsListChanged", true},
                                                          {"promptsListChanged", true},
                                                          {"resourcesListChanged", true}}}});
  ask.until = Until::first_event;
  ask.patience = kStreamPatience;
  Result<Reply> reply = examination.ask(ask);
  if (!reply) return unopened("subscriptions/listen", reply.error());
  if (error_code_in(reply->answer()) == kMethodNotFound) {
    return Verdict::note("subscriptions/listen is not offered: clients must poll for changes");
  }
  if (!reply->is_event_stream()) {
    return Verdict::fail(seen(*reply) + " to subscriptions/listen, without an event stream",
                         "Answer with text/event-stream");
  }
  if (reply->events.empty()) {
    return Verdict::fail("the stream's head arrives, and no event within 3 s",
                         std::string(kHeldBack));
  }
  const Result<json::value> first = parse_json(reply->events.front().data);
  const json::object* const message = first ? first->if_object() : nullptr;
  if (message == nullptr ||
      text_at(*message, "method") != "notifications/subscriptions/acknowledged") {
    return Verdict::fail("the first event is no notifications/subscriptions/acknowledged",
                         "Send it before all others");
  }
  const json::object* const params = object_at(*message, "params");
  const json::object* const meta = params == nullptr ? nullptr : object_at(*params, "_meta");
  if (meta == nullptr || text_at(*meta, kSubscriptionKey) != examination.last_id()) {
    return Verdict::fail("the acknowledgement does not carry the subscription's id",
                         "Set _meta[\"io.modelcontextprotocol/subscriptionId\"] to the request's "
                         "id in each notification of the stream");
  }
  std::string found = "acknowledged after " + in_milliseconds(*reply->body_after) +
                      ": nothing in between holds events back";
  examination.stream = *std::move(reply);
  return Verdict::ok(std::move(found));
}

/// What the proxies in between say of themselves.
std::string way_of(const Reply& reply) {
  std::string out;
  for (const std::string_view name : {"Via", "Server"}) {
    const std::string value = without_secrets(std::string(reply.header(name)));
    if (!value.empty()) out.append(", ").append(name).append(": ").append(value, 0, 80);
  }
  return out;
}

std::optional<Verdict> check_stream_head(Examination& examination) {
  if (!examination.stream) return {};
  const Reply& stream = *examination.stream;
  if (equals_ignoring_case(stream.header("X-Accel-Buffering"), "no")) {
    return Verdict::ok("X-Accel-Buffering: no" + way_of(stream));
  }
  return Verdict::note("event streams have no X-Accel-Buffering: no" + way_of(stream),
                       "Add it: nginx and others buffer streams without it");
}

std::optional<Verdict> check_stream_coding(Examination& examination) {
  if (!examination.stream) return {};
  const std::string coding(examination.stream->header("Content-Encoding"));
  if (coding.empty() || coding == "identity") return Verdict::ok("not compressed");
  return Verdict::fail("Content-Encoding: " + coding + ", which the client has not accepted",
                       "Do not compress event streams: compression holds events back");
}

std::optional<Verdict> check_resumption(Examination& examination) {
  const LegacyEra* const era = examination.legacy_era();
  if (era == nullptr) return {};
  const Result<Reply> first = examination.ask(examination.legacy(*era, "ping"));
  if (!first) return Verdict::unanswered(first.error());
  const Result<Reply> second = examination.ask(examination.legacy(*era, "ping"));
  if (!second) return Verdict::unanswered(second.error());
  const auto id_of = [](const Reply& reply) {
    return reply.events.empty() ? std::string() : reply.events.front().id;
  };
  std::string id = id_of(*first);
  if (!id.empty() && id == id_of(*second)) {
    return Verdict::fail("two streams have the event id \"" + id + "\"",
                         "Give each event of a session an id of its own, such as STREAM-NUMBER");
  }
  if (id.empty() && examination.stream) id = id_of(*examination.stream);
  if (id.empty()) {
    const bool was_stream = first->is_event_stream() || examination.stream;
    return Verdict::note(was_stream ? "events have no ids: streams cannot be resumed"
                                    : "no stream was seen: a ping is answered with JSON");
  }
  Ask ask = get_stream(examination, *era);
  ask.headers.emplace_back("Last-Event-ID", id);
  const Result<Reply> resumed = examination.ask(ask);
  if (!resumed) return unopened("GET with Last-Event-ID", resumed.error());
  const std::string found = seen(*resumed) + " to GET with Last-Event-ID";
  if (resumed->status / 100 == 2 && resumed->is_event_stream()) return Verdict::ok(found);
  return Verdict::warn(found, "Resume the stream of the event, or send no event ids");
}

constexpr std::array kStreamingChecks = {
    ServerCheck{"GET stream",
                "2025-11-25, Transports, Listening for Messages from the Server, item 3",
                check_standalone_stream},
    ServerCheck{"resumption", "2025-11-25, Transports, Resumability and Redelivery, item 1",
                check_resumption},
    ServerCheck{"listen", "2026-07-28, Subscriptions, Acknowledgment", check_listen},
    ServerCheck{"buffering", "2026-07-28, Streamable HTTP, Receiving Messages", check_stream_head},
    ServerCheck{"compression", "RFC 9110, section 12.5.3", check_stream_coding},
};

}  // namespace

std::span<const ServerCheck> streaming_checks() {
  return kStreamingChecks;
}

}  // namespace sluice

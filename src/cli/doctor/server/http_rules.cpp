#include "cli/doctor/server/http_rules.hpp"

#include <string>
#include <utility>

#include "json/members.hpp"

namespace sluice {
namespace {

constexpr std::string_view kForeignHost = "sluice-doctor.invalid";
constexpr std::string_view kForeignOrigin = "https://sluice-doctor.invalid";

/// Whether the server takes `ask`, which has a foreign origin, from a website whose name leads to
/// it: with the name as its host, and without all that authorizes the user.
bool is_open_to_websites(Examination& examination, Ask ask) {
  if (examination.is_socket) return false;
  ask.headers.emplace_back("Host", kForeignHost);
  ask.is_anonymous = true;
  ask.is_foreign = true;
  const Result<Reply> reply = examination.ask(ask);
  return reply && reply->status / 100 == 2;
}

}  // namespace

void set_field(Ask& ask, std::string_view name, std::string_view value) {
  for (auto& field : ask.headers) {
    if (field.first == name) field.second = value;
  }
}

void remove_field(Ask& ask, std::string_view name) {
  std::erase_if(ask.headers, [&](const auto& field) { return field.first == name; });
}

Verdict judge_origin(Examination& examination, Ask ask) {
  ask.may_be_refused = true;
  ask.headers.emplace_back("Origin", kForeignOrigin);
  const Result<Reply> reply = examination.ask(ask);
  if (!reply) return Verdict::unanswered(reply.error());
  const std::string found = seen(*reply) + " to Origin: " + std::string(kForeignOrigin);
  if (reply->status == 403) return Verdict::ok(found);
  const std::string fix = "Answer 403 unless the server expects the origin";
  if (reply->status / 100 != 2) return Verdict::warn(found, fix);
  if (!examination.is_private()) return Verdict::warn(found, fix);
  const bool is_open = is_open_to_websites(examination, std::move(ask));
  return Verdict::fail(
      found + (is_open ? ": any website can use this server by DNS rebinding" : ""), fix);
}

Verdict judge_answer(const Examination& examination, const Reply& reply) {
  const auto answer = reply.answer();
  if (!answer) {
    return Verdict::fail(seen(reply) + " without a JSON-RPC response",
                         "Answer each request with a result or an error");
  }
  if (text_at(*answer, "jsonrpc") != "2.0") {
    return Verdict::fail("the answer has no \"jsonrpc\": \"2.0\"", "Add it");
  }
  if (text_at(*answer, "id") != examination.last_id()) {
    const json::value* const id = answer->if_contains("id");
    return Verdict::fail("the id \"" + examination.last_id() + "\" came back as " +
                             (id == nullptr ? "nothing" : to_json(*id)),
                         "Return the id as it came: clients match answers by it");
  }
  const std::string type(reply.header("Content-Type"));
  if (!reply.is_event_stream() && !reply.has_type("application/json")) {
    return Verdict::fail("Content-Type: " + type,
                         "Answer with application/json or text/event-stream");
  }
  return Verdict::ok("the request's id, " + type);
}

}  // namespace sluice

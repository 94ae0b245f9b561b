#include "client/session/contract/stream_position.hpp"

#include "json/json.hpp"
#include "json/members.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {

std::string to_text(const StreamPosition& position) {
  return to_json(json::object{{"revision", position.revision->name},
                              {"server", position.server},
                              {"session", position.session},
                              {"tool", position.tool},
                              {"request", position.request},
                              {"event", position.last_event}});
}

Result<StreamPosition> parse_stream_position(std::string_view text) {
  const Result<json::value> parsed = parse_json(text);
  const json::object* const members = parsed ? parsed->if_object() : nullptr;
  const json::object none;
  const json::object& from = members == nullptr ? none : *members;
  StreamPosition out{.revision = find_revision(text_at(from, "revision")),
                     .server = std::string(text_at(from, "server")),
                     .session = std::string(text_at(from, "session")),
                     .tool = std::string(text_at(from, "tool")),
                     .request = RequestId(text_at(from, "request")),
                     .last_event = std::string(text_at(from, "event"))};
  const bool is_legacy = out.revision != nullptr && out.revision->era == Era::legacy;
  if (!is_legacy || out.request.empty() || out.last_event.empty()) {
    return fail(kInvalidParams, "This is not where a call can be taken up");
  }
  return out;
}

}  // namespace sluice

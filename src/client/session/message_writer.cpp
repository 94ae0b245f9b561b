#include "client/session/message_writer.hpp"

#include <utility>

#include "client/session/handshake.hpp"
#include "json/members.hpp"
#include "protocol/mirrored_headers.hpp"
#include "protocol/negotiation.hpp"
#include "protocol/task.hpp"

namespace sluice {
namespace {

json::object& object_in(json::object& of, std::string_view name) {
  json::value& member = of[name];
  if (!member.is_object()) member.emplace_object();
  return member.get_object();
}

/// A request whose answer has progress: its id is also its token.
void add_progress_token(json::object& params, std::int64_t id) {
  object_in(params, "_meta")["progressToken"] = id;
}

}  // namespace

OutgoingMessage MessageWriter::write(Message message, const Revision& revision) const {
  json::object& params = message.params;
  json::object out{{"jsonrpc", "2.0"}};
  if (!message.id.empty()) {
    const std::int64_t id = std::stoll(message.id);
    out["id"] = id;
    if (!is_handshake(message.method)) add_progress_token(params, id);
  }
  out["method"] = message.method;
  if (revision.era == Era::modern) {
    json::object& meta = object_in(params, "_meta");
    meta["io.modelcontextprotocol/protocolVersion"] = revision.name;
    meta[kClientInfoKey] = description_of(options_->info);
    json::object capabilities = options_->capabilities;
    if (message.may_become_task || message.method.starts_with("tasks/")) {
      object_in(capabilities, "extensions")[kTasksExtension] = json::object();
    }
    meta["io.modelcontextprotocol/clientCapabilities"] = std::move(capabilities);
  }
  const auto mirrored = mirrored_parameter(message.method);
  std::string name(mirrored ? text_at(params, *mirrored) : std::string_view());
  std::vector<std::pair<std::string, std::string>> headers;
  if (message.method == "tools/call" && mirrors_parameters(revision)) {
    const json::object* const arguments = object_at(params, "arguments");
    if (arguments != nullptr) headers = tools_->headers_of_call(name, *arguments);
  }
  if (!params.empty()) out["params"] = std::move(params);
  return {.text = to_json(out),
          .id = std::move(message.id),
          .method = std::move(message.method),
          .name = std::move(name),
          .revision = &revision,
          .headers = std::move(headers)};
}

}  // namespace sluice

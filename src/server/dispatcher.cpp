#include "server/dispatcher.hpp"

#include <memory>
#include <utility>

#include "core/json.hpp"
#include "protocol/error_codes.hpp"
#include "rpc/error_codes.hpp"
#include "server/call.hpp"

namespace sluice {
namespace {

/// Where the stream methods are documented, as an extension of every era. Its name follows the
/// rules for `_meta` keys (2026-07-28, Base Protocol, `_meta`).
constexpr std::string_view kStreamExtension = R"("dev.sluice/streams":{})";

std::string tool_json(const Tool& tool) {
  std::string out = R"({"name":)";
  append_json_string(out, tool.name);
  out.append(R"(,"description":)");
  append_json_string(out, tool.description);
  out.append(R"(,"inputSchema":)").append(tool.input_schema).append("}");
  return out;
}

}  // namespace

Dispatcher::Dispatcher(const ServerDefinition& definition, const ResultWriter& results,
                       StreamService& streams)
    : definition_(&definition), results_(&results), streams_(&streams) {
  tools_member_ = R"("tools":[)";
  for (const Tool& tool : definition.tools) {
    if (tools_member_.back() != '[') tools_member_.push_back(',');
    tools_member_.append(tool_json(tool));
  }
  tools_member_.push_back(']');

  std::string instructions;
  if (!definition.instructions.empty()) {
    instructions = R"(,"instructions":)";
    append_json_string(instructions, definition.instructions);
  }
  discover_members_ = R"("supportedVersions":)" + revisions_json() +
                      R"(,"capabilities":{"tools":{},"extensions":{)" +
                      std::string(kStreamExtension) + "}}" + instructions;
  // `streaming` is what clients of the stream methods look for; `extensions` is the later form.
  initialize_members_ = R"("capabilities":{"tools":{},"streaming":true,"extensions":{)" +
                        std::string(kStreamExtension) + R"(}},"serverInfo":)" +
                        results.server_info() + instructions;
}

Outcome Dispatcher::reject(const MessageError& error, std::string& out) {
  append_error(out, error.id, error.error);
  return {.kind = Outcome::Kind::answered,
          .http_status = http_status_of(error.error, nullptr, !error.id.empty())};
}

Outcome Dispatcher::error(const RequestId& id, const Error& error, const Revision* revision,
                          std::string& out) {
  append_error(out, id, error);
  return {.kind = Outcome::Kind::answered,
          .http_status = http_status_of(error, revision, !id.empty())};
}

Outcome Dispatcher::dispatch(const Message& message, const MirroredHeaders* headers, Caller& caller,
                             std::string& out) {
  if (message.kind == MessageKind::response) return {.kind = Outcome::Kind::accepted};
  if (streams_->serves(message.method)) {
    if (message.kind == MessageKind::notification) return {.kind = Outcome::Kind::accepted};
    const bool answered = streams_->handle(message, caller, out);
    return {.kind = answered ? Outcome::Kind::answered : Outcome::Kind::pending};
  }
  if (message.method == "initialize" && message.kind == MessageKind::request) {
    return initialize(message, out);
  }
  Result<RequestContext> context = negotiate(message, headers);
  if (!context) {
    Outcome refused = error(message.id, context.error(), nullptr, out);
    // Whatever keeps a request from being understood is a bad request to HTTP too.
    refused.http_status = 400;
    return refused;
  }
  if (message.kind == MessageKind::notification) return {.kind = Outcome::Kind::accepted};

  const Revision& revision = *context->revision;
  const bool modern = revision.era == Era::modern;
  if (message.method == "tools/call") return call_tool(message, std::move(*context), caller, out);
  if (message.method == "tools/list") {
    results_->append_cacheable(out, message.id, revision, tools_member_);
    return {};
  }
  if (modern && message.method == "server/discover") {
    results_->append_cacheable(out, message.id, revision, discover_members_);
    return {};
  }
  if (!modern && message.method == "ping") {
    results_->append(out, message.id, revision, {});
    return {};
  }
  return error(message.id,
               {kMethodNotFound, "Method not found: " + std::string(message.method), {}}, &revision,
               out);
}

Outcome Dispatcher::initialize(const Message& message, std::string& out) {
  const json::value* const requested =
      message.params == nullptr ? nullptr : message.params->if_contains("protocolVersion");
  if (requested == nullptr || !requested->is_string()) {
    return error(message.id,
                 {kInvalidParams, "Invalid params: protocolVersion must be a string", {}}, nullptr,
                 out);
  }
  const Revision& revision = negotiate_initialize(requested->get_string());
  std::string members = R"("protocolVersion":)";
  append_json_string(members, revision.name);
  members.append(",").append(initialize_members_);
  results_->append(out, message.id, revision, members);
  return {};
}

Outcome Dispatcher::call_tool(const Message& message, RequestContext context, Caller& caller,
                              std::string& out) {
  static const json::object kNoArguments;
  const Revision& revision = *context.revision;
  const json::value* const name =
      message.params == nullptr ? nullptr : message.params->if_contains("name");
  if (name == nullptr || !name->is_string()) {
    return error(message.id, {kInvalidParams, "Invalid params: name must be a string", {}},
                 &revision, out);
  }
  const Tool* const tool = definition_->find_tool(name->get_string());
  if (tool == nullptr) {
    return error(message.id,
                 {kInvalidParams, "Unknown tool: " + std::string(name->get_string()), {}},
                 &revision, out);
  }
  const json::object* arguments = &kNoArguments;
  if (const json::value* given = message.params->if_contains("arguments")) {
    arguments = given->if_object();
    if (arguments == nullptr) {
      return error(message.id, {kInvalidParams, "Invalid params: arguments must be an object", {}},
                   &revision, out);
    }
  }
  if (const auto* immediate = std::get_if<Tool::Immediate>(&tool->handler)) {
    const Result<ToolResult> result = (*immediate)(*arguments);
    if (!result) return error(message.id, result.error(), &revision, out);
    results_->append_tool_result(out, message.id, revision, *result);
    return {};
  }
  if (streams_->draining()) {
    return error(message.id, {-32000, "The server is shutting down; try another", {}}, &revision,
                 out);
  }
  Result<std::shared_ptr<ReplyChannel>> channel = caller.open_channel(message.id);
  if (!channel) return error(message.id, channel.error(), &revision, out);
  auto call = std::make_shared<Call>(message.id, std::move(context), caller.principal(),
                                     std::move(*channel), *streams_, *results_);
  call->open();
  if (Result<void> started = std::get<Tool::Deferred>(tool->handler)(*arguments, call); !started) {
    call->fail(started.error());
  }
  return {.kind = Outcome::Kind::pending};
}

}  // namespace sluice

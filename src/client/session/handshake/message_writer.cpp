#include "client/session/handshake/message_writer.hpp"

#include <utility>

#include "client/session/handshake/handshake.hpp"
#include "json/members.hpp"
#include "protocol/mirrored_headers.hpp"
#include "protocol/negotiation.hpp"
#include "protocol/task.hpp"
#include "protocol/tool_result.hpp"

namespace sluice {
namespace {

/// Room for what most messages have besides what they say of the client.
constexpr std::size_t kUsualParams = 512;

constexpr std::string_view kMeta = "_meta";
constexpr std::string_view kTokenKey = "progressToken";
constexpr std::string_view kRevisionKey = "io.modelcontextprotocol/protocolVersion";
constexpr std::string_view kCapabilitiesKey = "io.modelcontextprotocol/clientCapabilities";

json::object with_tasks(json::object capabilities) {
  json::value& extensions = capabilities["extensions"];
  if (!extensions.is_object()) extensions.emplace_object();
  extensions.get_object()[kTasksExtension] = json::object();
  return capabilities;
}

json::object with_parts(json::object capabilities) {
  capabilities[kPartialResultsCapability] = json::object();
  return capabilities;
}

/// Whether it is a request whose answer has progress. Its id is its token.
bool has_token(const MessageWriter::Message& message) {
  return !message.id.empty() && !is_handshake(message.method);
}

/// Writes the members of an object, one by one.
class MemberWriter {
 public:
  explicit MemberWriter(std::string& out) : out_(&out) { out.push_back('{'); }

  /// Returns where the value is to be written.
  std::string& add(std::string_view name) {
    if (!std::exchange(is_first_, false)) out_->push_back(',');
    append_json_string(*out_, name);
    out_->push_back(':');
    return *out_;
  }
  void end() { out_->push_back('}'); }

 private:
  std::string* out_;
  bool is_first_ = true;
};

}  // namespace

MessageWriter::MessageWriter(const ClientSessionOptions& options, const ListedTools& tools,
                             bool carries_headers)
    : info_(to_json(description_of(options.info))),
      capabilities_{to_json(options.capabilities), to_json(with_tasks(options.capabilities)),
                    to_json(with_parts(options.capabilities)),
                    to_json(with_parts(with_tasks(options.capabilities)))},
      tools_(&tools),
      carries_headers_(carries_headers) {}

void MessageWriter::append_params(std::string& out, const Message& message,
                                  const Revision& revision) const {
  const bool is_followed = has_token(message);
  const bool is_modern = revision.era == Era::modern;
  const bool has_own_meta = is_followed || is_modern;
  MemberWriter params(out);
  for (const auto& [name, value] : message.params) {
    if (!has_own_meta || name != kMeta) append_json(params.add(name), value);
  }
  if (has_own_meta) {
    MemberWriter meta(params.add(kMeta));
    if (const json::object* const given = object_at(message.params, kMeta)) {
      for (const auto& [name, value] : *given) {
        const bool is_own = (is_followed && name == kTokenKey) ||
                            (message.wants_parts && name == kPartialResultToken) ||
                            (is_modern && (name == kRevisionKey || name == kClientInfoKey ||
                                           name == kCapabilitiesKey));
        if (!is_own) append_json(meta.add(name), value);
      }
    }
    if (is_followed) meta.add(kTokenKey).append(message.id);
    if (message.wants_parts) append_json_string(meta.add(kPartialResultToken), message.id);
    if (is_modern) {
      const bool knows_tasks = message.may_become_task || message.method.starts_with("tasks/");
      append_json_string(meta.add(kRevisionKey), revision.name);
      meta.add(kClientInfoKey).append(info_);
      meta.add(kCapabilitiesKey)
          .append(capabilities_.at((knows_tasks ? 1U : 0U) + (message.wants_parts ? 2U : 0U)));
    }
    meta.end();
  }
  params.end();
}

OutgoingMessage MessageWriter::write(Message message, const Revision& revision) const {
  std::string text;
  text.reserve(kUsualParams + info_.size() + capabilities_.back().size());
  text.append(R"({"jsonrpc":"2.0")");
  if (!message.id.empty()) text.append(R"(,"id":)").append(message.id);
  append_json_string(text.append(R"(,"method":)"), message.method);
  if (!message.params.empty() || has_token(message) || revision.era == Era::modern) {
    append_params(text.append(R"(,"params":)"), message, revision);
  }
  text.push_back('}');
  const auto mirrored = mirrored_parameter(message.method);
  std::string name(mirrored ? text_at(message.params, *mirrored) : std::string_view());
  std::vector<std::pair<std::string, std::string>> headers;
  if (message.method == "tools/call" && mirrors_parameters(revision)) {
    const json::object* const arguments = object_at(message.params, "arguments");
    if (arguments != nullptr) headers = tools_->headers_of_call(name, *arguments);
  }
  return {.text = std::move(text),
          .id = std::move(message.id),
          .method = std::move(message.method),
          .name = std::move(name),
          .revision = &revision,
          .headers = std::move(headers)};
}

}  // namespace sluice

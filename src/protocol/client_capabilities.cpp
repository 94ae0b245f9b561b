#include "protocol/client_capabilities.hpp"

#include "core/text/utf8.hpp"
#include "protocol/task.hpp"

namespace sluice {
namespace {

const json::object* object_member(const json::object& object, std::string_view name) {
  const json::value* const member = object.if_contains(name);
  return member == nullptr ? nullptr : member->if_object();
}

/// The most bytes that are kept of each text in a ClientInfo.
constexpr std::size_t kMaxInfo = 256;

std::string info_text(const json::object& said, std::string_view name) {
  const json::value* const member = said.if_contains(name);
  if (member == nullptr || !member->is_string()) return {};
  std::string_view text = member->get_string();
  if (text.size() > kMaxInfo) text = text.substr(0, complete_utf8_prefix(text.substr(0, kMaxInfo)));
  return std::string(text);
}

}  // namespace

ClientCapabilities decode_client_capabilities(const json::object& declared,
                                              const Revision& revision) {
  ClientCapabilities found;
  found.roots = object_member(declared, "roots") != nullptr;
  if (const json::object* sampling = object_member(declared, "sampling")) {
    found.sampling = true;
    found.sampling_tools = revision.sampling_tools && object_member(*sampling, "tools") != nullptr;
  }
  const json::object* const elicitation = object_member(declared, "elicitation");
  if (elicitation != nullptr && revision.elicitation != ElicitationModel::none) {
    found.elicitation_url = revision.elicitation == ElicitationModel::form_or_url &&
                            object_member(*elicitation, "url") != nullptr;
    // An empty object declares form mode, which used to be the only mode.
    found.elicitation_form =
        object_member(*elicitation, "form") != nullptr || !found.elicitation_url;
  }
  const json::object* const extensions = object_member(declared, "extensions");
  if (extensions != nullptr && revision.tasks == TaskModel::extension) {
    found.tasks = object_member(*extensions, kTasksExtension) != nullptr;
  }
  return found;
}

ClientInfo decode_client_info(const json::object& said) {
  return {.name = info_text(said, "name"),
          .version = info_text(said, "version"),
          .title = info_text(said, "title")};
}

std::string missing_capabilities(const ClientCapabilities& declared, std::string_view method,
                                 const json::object& params) {
  if (method == "roots/list") return declared.roots ? "" : R"({"roots":{}})";
  if (method == "sampling/createMessage") {
    const bool tools = params.contains("tools") || params.contains("toolChoice");
    if (tools && !declared.sampling_tools) return R"({"sampling":{"tools":{}}})";
    return declared.sampling ? "" : R"({"sampling":{}})";
  }
  if (method == "elicitation/create") {
    const json::value* const mode = params.if_contains("mode");
    if (mode != nullptr && *mode == "url") {
      return declared.elicitation_url ? "" : R"({"elicitation":{"url":{}}})";
    }
    return declared.elicitation_form ? "" : R"({"elicitation":{"form":{}}})";
  }
  return {};
}

}  // namespace sluice

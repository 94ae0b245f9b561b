#include "protocol/client_capabilities.hpp"

#include "protocol/task.hpp"

namespace sluice {
namespace {

const json::object* object_member(const json::object& object, std::string_view name) {
  const json::value* const member = object.if_contains(name);
  return member == nullptr ? nullptr : member->if_object();
}

}  // namespace

ClientCapabilities decode_client_capabilities(const json::object& declared) {
  ClientCapabilities found;
  found.roots = object_member(declared, "roots") != nullptr;
  if (const json::object* sampling = object_member(declared, "sampling")) {
    found.sampling = true;
    found.sampling_tools = object_member(*sampling, "tools") != nullptr;
  }
  if (const json::object* elicitation = object_member(declared, "elicitation")) {
    found.elicitation_url = object_member(*elicitation, "url") != nullptr;
    // An empty object declares form mode, which used to be the only mode.
    found.elicitation_form =
        object_member(*elicitation, "form") != nullptr || !found.elicitation_url;
  }
  if (const json::object* extensions = object_member(declared, "extensions")) {
    found.tasks = object_member(*extensions, kTasksExtension) != nullptr;
  }
  return found;
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

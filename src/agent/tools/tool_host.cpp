#include "agent/tools/tool_host.hpp"

namespace sluice {

std::string_view to_string(ToolEnd::Status status) {
  switch (status) {
    case ToolEnd::Status::completed:
      return "completed";
    case ToolEnd::Status::failed:
      return "failed";
    case ToolEnd::Status::cancelled:
      return "cancelled";
    case ToolEnd::Status::rejected:
      return "rejected";
    case ToolEnd::Status::unknown:
      return "unknown";
  }
  return {};
}

ToolEnd lost_end(const AgentTool& tool, std::string_view why) {
  const bool may_be_repeated = tool.is_read_only || tool.is_idempotent;
  if (may_be_repeated) {
    return {.status = ToolEnd::Status::failed, .text = "The tool failed: " + std::string(why)};
  }
  return {.status = ToolEnd::Status::unknown,
          .text = "It is not known whether the call was carried out: " + std::string(why)};
}

}  // namespace sluice

#include "protocol/revision.hpp"

#include <algorithm>
#include <array>

#include "json/json.hpp"
#include "protocol/error_codes.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

constexpr std::array<Revision, 5> kRevisions = {{
    {.name = "2026-07-28",
     .era = Era::modern,
     .result_type = true,
     .cache_hints = true,
     .server_info_in_meta = true,
     .routing_headers = true,
     .http_error_status = true,
     .progress_message = true,
     .priming_event = false,
     .audio = true,
     .input_errors = true,
     .tool_annotations = true,
     .completions = true,
     .structured_output = true,
     .structured_values = true,
     .resource_links = true,
     .titles = true,
     .icons = true,
     .elicitation = ElicitationModel::form_or_url,
     .sampling_tools = true,
     .elicitation_ids = false,
     .tasks = TaskModel::extension,
     .batches = false,
     .unknown_resource = kInvalidParams},
    {.name = "2025-11-25",
     .era = Era::legacy,
     .result_type = false,
     .cache_hints = false,
     .server_info_in_meta = false,
     .routing_headers = false,
     .http_error_status = false,
     .progress_message = true,
     .priming_event = true,
     .audio = true,
     .input_errors = true,
     .tool_annotations = true,
     .completions = true,
     .structured_output = true,
     .structured_values = false,
     .resource_links = true,
     .titles = true,
     .icons = true,
     .elicitation = ElicitationModel::form_or_url,
     .sampling_tools = true,
     .elicitation_ids = true,
     .tasks = TaskModel::requested,
     .batches = false,
     .unknown_resource = kResourceNotFound},
    {.name = "2025-06-18",
     .era = Era::legacy,
     .result_type = false,
     .cache_hints = false,
     .server_info_in_meta = false,
     .routing_headers = false,
     .http_error_status = false,
     .progress_message = true,
     .priming_event = false,
     .audio = true,
     .input_errors = false,
     .tool_annotations = true,
     .completions = true,
     .structured_output = true,
     .structured_values = false,
     .resource_links = true,
     .titles = true,
     .icons = false,
     .elicitation = ElicitationModel::form,
     .sampling_tools = false,
     .elicitation_ids = false,
     .tasks = TaskModel::none,
     .batches = false,
     .unknown_resource = kResourceNotFound},
    {.name = "2025-03-26",
     .era = Era::legacy,
     .result_type = false,
     .cache_hints = false,
     .server_info_in_meta = false,
     .routing_headers = false,
     .http_error_status = false,
     .progress_message = true,
     .priming_event = false,
     .audio = true,
     .input_errors = false,
     .tool_annotations = true,
     .completions = true,
     .structured_output = false,
     .structured_values = false,
     .resource_links = false,
     .titles = false,
     .icons = false,
     .elicitation = ElicitationModel::none,
     .sampling_tools = false,
     .elicitation_ids = false,
     .tasks = TaskModel::none,
     .batches = true,
     .unknown_resource = kResourceNotFound},
    {.name = "2024-11-05",
     .era = Era::legacy,
     .result_type = false,
     .cache_hints = false,
     .server_info_in_meta = false,
     .routing_headers = false,
     .http_error_status = false,
     .progress_message = false,
     .priming_event = false,
     .audio = false,
     .input_errors = false,
     .tool_annotations = false,
     .completions = false,
     .structured_output = false,
     .structured_values = false,
     .resource_links = false,
     .titles = false,
     .icons = false,
     .elicitation = ElicitationModel::none,
     .sampling_tools = false,
     .elicitation_ids = false,
     .tasks = TaskModel::none,
     .batches = false,
     .unknown_resource = kResourceNotFound},
}};

}  // namespace

std::span<const Revision> revisions() {
  return kRevisions;
}

std::size_t revision_index(const Revision& revision) {
  return static_cast<std::size_t>(&revision - kRevisions.data());
}

const Revision* find_revision(std::string_view name) {
  const auto* const found = std::ranges::find(kRevisions, name, &Revision::name);
  return found == kRevisions.end() ? nullptr : found;
}

const Revision& newest_revision(Era era) {
  return *std::ranges::find(kRevisions, era, &Revision::era);
}

std::string revisions_json(std::optional<Era> era) {
  std::string out = "[";
  for (const Revision& revision : kRevisions) {
    if (era && revision.era != *era) continue;
    if (out.size() > 1) out.push_back(',');
    append_json_string(out, revision.name);
  }
  out.push_back(']');
  return out;
}

}  // namespace sluice

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sluice {

/// How a revision conveys version, identity and capabilities (2026-07-28, Versioning, Terminology).
enum class Era : std::uint8_t {
  legacy,  // by an `initialize` handshake
  modern,  // by `_meta` on every request
};

/// Whether and how a tool call can become a task, which continues after the call has been answered.
enum class TaskModel : std::uint8_t {
  none,
  requested,  // the client requests it with `task` (2025-11-25, Tasks)
  extension,  // the server decides, for clients that declare the extension (SEP-2663)
};

/// What a server may ask the user for by way of the client.
enum class ElicitationModel : std::uint8_t { none, form, form_or_url };

/// How a revision differs from the others. Each revision is one row in revision.cpp. Code asks the
/// row what it needs to know, never the revision's name.
struct Revision {
  std::string_view name;
  Era era;
  bool result_type;          // results carry `resultType`
  bool cache_hints;          // list results carry `ttlMs` and `cacheScope`
  bool server_info_in_meta;  // results carry `_meta["io.modelcontextprotocol/serverInfo"]`
  bool routing_headers;      // HTTP requests mirror method and name in Mcp-Method and Mcp-Name
  bool http_error_status;    // protocol errors also set the HTTP status
  bool progress_message;     // progress notifications may carry a `message`
  bool priming_event;        // event streams begin with an event that has only an id
  bool audio;                // content may be audio
  bool input_errors;  // arguments that violate the schema give a tool result, not a protocol error
  bool tool_annotations;   // tools may have `annotations`
  bool completions;        // the server declares the capability `completions`
  bool structured_output;  // tools may have `outputSchema`, results `structuredContent`
  bool structured_values;  // both may be of any type, not only objects
  bool resource_links;     // content may be a resource link
  bool titles;             // tools, resources and prompts may have a `title` and `_meta`
  bool icons;              // tools, resources and prompts may have `icons`
  ElicitationModel elicitation;
  bool sampling_tools;   // sampling requests may include tools
  bool elicitation_ids;  // URL elicitations have ids, and their completion is notified
  TaskModel tasks;       // how tool calls can become tasks
  bool batches;          // several messages may be sent as one array
  int unknown_resource;  // error code for a resource that does not exist
};

/// All supported revisions, newest first.
std::span<const Revision> revisions();

/// The index of a row in revisions().
std::size_t revision_index(const Revision& revision);

/// The revision called `name`, or null.
const Revision* find_revision(std::string_view name);

const Revision& newest_revision(Era era);

/// The names of all supported revisions, or of those of one era, as a JSON array.
std::string revisions_json(std::optional<Era> era = {});

}  // namespace sluice

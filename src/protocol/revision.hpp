#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace sluice {

/// How a revision conveys version, identity and capabilities (2026-07-28, Versioning, Terminology).
enum class Era : std::uint8_t {
  legacy,  // by an `initialize` handshake
  modern,  // by `_meta` on every request
};

/// Whether and how a tool call can become a task, which goes on after its answer.
enum class TaskModel : std::uint8_t {
  none,
  requested,  // the client asks for one with `task` (2025-11-25, Tasks)
  extension,  // the server decides, for clients that declare the extension (SEP-2663)
};

/// What is different about a revision. One row a revision, in revision.cpp: what code must know of
/// a revision it asks its row, never its name.
struct Revision {
  std::string_view name;
  Era era;
  bool result_type;          // results carry `resultType`
  bool cache_hints;          // list results carry `ttlMs` and `cacheScope`
  bool server_info_in_meta;  // results carry `_meta["io.modelcontextprotocol/serverInfo"]`
  bool routing_headers;      // HTTP requests mirror method and name in Mcp-Method and Mcp-Name
  bool http_error_status;    // protocol errors also show in the HTTP status
  bool progress_message;     // progress notifications may carry a `message`
  bool priming_event;        // event streams begin with an event that only has an id
  bool audio;                // content may be audio
  bool input_errors;         // arguments that break the schema make a result, not an error
  bool tool_annotations;     // tools may have `annotations`
  bool completions;          // `completions` is a capability
  bool structured_output;    // tools may have `outputSchema`, results `structuredContent`
  bool structured_values;    // both may be of other types than objects
  bool resource_links;       // content may be a resource link
  bool titles;               // tools, resources and prompts may have a `title` and `_meta`
  bool icons;                // they may have `icons`
  bool elicitation_ids;      // elicitations in URL mode have ids, by which their end is told
  TaskModel tasks;           // what long-running tool calls can become
  bool batches;              // messages may come together, in an array
  int unknown_resource;      // the error code for a resource that does not exist
};

/// Every revision served here, newest first.
std::span<const Revision> revisions();

/// The place of a row of revisions() in it.
std::size_t revision_index(const Revision& revision);

/// The revision of that name, or null.
const Revision* find_revision(std::string_view name);

/// The newest revision of `era`.
const Revision& newest_revision(Era era);

/// The names of all revisions served, as a JSON array.
std::string revisions_json();

}  // namespace sluice

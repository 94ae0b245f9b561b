#pragma once

#include <optional>
#include <string_view>

#include "client/session/client_session.hpp"
#include "json/json.hpp"
#include "protocol/logging_level.hpp"
#include "protocol/revision.hpp"

namespace sluice {

// What differs between the messages of a proxy's client and those of the server behind it. All
// other members pass unchanged, known or not.

/// A copy of a request's params that outlives the message, without what the client's own connection
/// needed, such as its progress token and the state of its rounds. The token of partial results
/// (draft SEP-2998) is left out, too: they could not be told apart on a shared connection.
json::object forwarded_params(const json::object& params);
/// Those params for a server that speaks `revision`. `level`: the log messages that the client
/// wants; a modern server reads that in each request.
json::object params_for(const Revision& revision, json::object params,
                        std::optional<LoggingLevel> level);

/// The result of `method` for a client that speaks `revision`. `about` is the server's own
/// description, from which a modern client learns whose result it is.
void make_result_for(const Revision& revision, std::string_view method, const json::object& about,
                     json::object& result);

/// Whether that would change nothing in the result of a tool.
bool is_tool_result_for(const Revision& revision, const json::object& result);

/// The error of `method` for a client that speaks `revision`: the codes for a resource that does
/// not exist, and for a capability that the client lacks, differ between the revisions. So do those
/// for a tool that runs only as a task. The URI of a resource in `data` gets the prefix of the
/// server.
Error error_for(const Revision& revision, std::string_view prefix, std::string_view method,
                Error error);

/// The params of a server's question for a client that speaks `revision`. URL elicitations get an
/// id if the revision has such ids, and lose it otherwise. The question belongs to none of the
/// server's tasks any more.
json::object question_for(const Revision& revision, std::string_view method, json::object params);

// Tasks are the proxy's own towards a client, whatever makes them behind it (ForwardedCall).

/// What a proxy passes on of the capabilities of either side: all but tasks and partial results.
json::object passed_on(const json::object& capabilities);
/// Adds the capability of tasks in the form of `revision`. `lists`: the client may list its tasks.
void add_tasks(const Revision& revision, bool lists, json::object& capabilities);
/// Whether calls of the server's tools can become tasks.
bool makes_tasks(const ServerDescription& server);
/// Tells a client that speaks `revision` which tools in the server's result of `method` can become
/// tasks, if only the server decides about that.
void offer_tasks(const Revision& revision, const ServerDescription& server, std::string_view method,
                 json::object& result);
/// The id of the task that a server that speaks `revision` has made of a call; empty if `result` is
/// that of the call.
std::string_view created_task(const Revision& revision, const json::object& result);

}  // namespace sluice

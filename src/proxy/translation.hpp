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

/// The params of a request for a server that speaks `revision`: a copy without what the client's
/// own connection needed, such as its progress token and the state of its rounds. `level`: the log
/// messages that the client wants; a modern server reads that in each request.
json::object params_for(const Revision& revision, const json::object& params,
                        std::optional<LoggingLevel> level);

/// The result of `method` for a client that speaks `revision`. `about` is the server's own
/// description, from which a modern client learns whose result it is.
void make_result_for(const Revision& revision, std::string_view method, const json::object& about,
                     json::object& result);

/// The error of `method` for a client that speaks `revision`: the codes for a resource that does
/// not exist, and for a capability that the client lacks, differ between the revisions.
Error error_for(const Revision& revision, std::string_view method, Error error);

/// The params of a question of a server for a client that speaks `revision`: only where URL
/// elicitations have ids, they get one, and elsewhere they lose it.
json::object question_for(const Revision& revision, std::string_view method, json::object params);

/// What a proxy passes on of the capabilities of either side: all but tasks.
json::object without_tasks(const json::object& capabilities);

}  // namespace sluice

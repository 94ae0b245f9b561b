#pragma once

#include <memory>
#include <string>

#include "json/json.hpp"
#include "json_schema/json_schema.hpp"
#include "rpc/message.hpp"
#include "server/calls/pending_request.hpp"
#include "server/catalog/definition.hpp"
#include "server/workers/long_messages.hpp"

namespace sluice {

/// The arguments of a `tools/call`: an object, empty if there are none.
const json::value& arguments_of(const Message& message);

/// Has `tool` answer `call`, which keeps the offer that the tool is of. The arguments follow its
/// schema, and live during the call of this.
void run_tool(const Tool& tool, const json::object& arguments,
              const std::shared_ptr<PendingRequest>& call);

/// The same of the `tools/call` whose text is `text`, if its arguments follow `input`, which is
/// looked into by `checks`: beside the loop. Else the call is refused.
void run_tool_checked(LongMessages& checks, const Tool& tool, const JsonSchema& input,
                      std::string text, const std::shared_ptr<PendingRequest>& call);

}  // namespace sluice

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "core/error.hpp"
#include "json/json.hpp"
#include "protocol/revision.hpp"
#include "server/calls/long_result.hpp"
#include "server/catalog/definition.hpp"

namespace sluice {

/// The members of a result as JSON text, or not written yet if they are long; or what will answer a
/// request that is kept for it.
using FeatureAnswer = std::variant<std::string, UnwrittenMembers,
                                   std::function<Result<void>(std::shared_ptr<PendingRequest>)>>;

// The methods that read what a server offers beside tools. Errors: -32602 for parameters that are
// missing, ill-typed or name nothing, the revision's own code for an unknown resource (`data.uri`),
// and the handler's.

/// The URI of what could be read: {uri}.
Result<std::string> known_resource(const ServerDefinition& definition, const json::object& params,
                                   const Revision& revision);

/// resources/read {uri}.
Result<FeatureAnswer> read_resource(const ServerDefinition& definition, const json::object& params,
                                    const Revision& revision);

/// prompts/get {name, arguments?}.
Result<FeatureAnswer> get_prompt(const ServerDefinition& definition, const json::object& params,
                                 const Revision& revision);

/// completion/complete {ref, argument: {name, value}, context?: {arguments?}}. What has no
/// completion of its own completes to nothing.
Result<FeatureAnswer> complete_argument(const ServerDefinition& definition,
                                        const json::object& params);

/// skills/get {uri}: the entry of one skill (SEP-2640).
Result<std::string> get_skill(const ServerDefinition& definition, const json::object& params);

/// resources/directory/read {uri}: what is in a folder of a skill, on one page (SEP-2640).
Result<std::string> read_directory(const ServerDefinition& definition, const json::object& params);

}  // namespace sluice

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "core/error.hpp"
#include "core/turns/turn_work.hpp"
#include "json/json.hpp"
#include "protocol/revision.hpp"
#include "server/calls/long_result.hpp"
#include "server/catalog/feature_index.hpp"

namespace sluice {

/// The members of a result, or not written yet if they are long; or a function that answers the
/// request later.
using FeatureAnswer = std::variant<ResultMembers, UnwrittenMembers,
                                   std::function<Result<void>(std::shared_ptr<PendingRequest>)>>;

// The methods for what a server offers besides tools. Errors: -32602 for parameters that are
// missing, have the wrong type or name something unknown; the revision's own code for an unknown
// resource (with `data.uri`); the handler's errors. Comparing a URI with templates counts as
// `work`.

/// The `uri` in `params`, if it names a resource that can be read.
Result<std::string> known_resource(const FeatureIndex& index, const json::object& params,
                                   const Revision& revision, TurnWork& work);

/// resources/read {uri}.
Result<FeatureAnswer> read_resource(const FeatureIndex& index, const json::object& params,
                                    const Revision& revision, TurnWork& work);

/// prompts/get {name, arguments?}.
Result<FeatureAnswer> get_prompt(const FeatureIndex& index, const json::object& params,
                                 const Revision& revision);

/// completion/complete {ref, argument: {name, value}, context?: {arguments?}}. For an argument
/// without a completer, the list of values is empty.
Result<FeatureAnswer> complete_argument(const FeatureIndex& index, const json::object& params,
                                        TurnWork& work);

/// skills/get {uri}: the entry of one skill (SEP-2640).
Result<std::string> get_skill(const ServerDefinition& definition, const json::object& params);

/// resources/directory/read {uri}: what is in a folder of a skill, on one page (SEP-2640).
Result<std::string> read_directory(const ServerDefinition& definition, const json::object& params);

}  // namespace sluice

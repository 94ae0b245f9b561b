#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "json/json.hpp"

namespace sluice {

/// The arguments of a tool: `given`, with those of `assignments` in place of or besides its
/// members, as the types in `schema` say (`inputSchema`).
///
/// - `name=text` is read as one of the types that the property allows: null, true or false, a
///   number (an integer only if it stays the same), JSON of an array or an object, and text last.
///   It must be one of `enum`.
/// - A name that is repeated gives the items of an array, and so does a text that is no JSON.
/// - `a.b=1` is the member `b` of `a`, unless there is a property `a.b`.
/// - `name:=JSON` is that JSON, whatever the type.
///
/// Errors carry kExitUsage: a text that does not fit, a name that the schema does not have, with
/// the nearest one, and required ones that are missing. They quote what the schema says.
Result<json::object> tool_arguments(const std::vector<std::string>& assignments,
                                    const json::object& schema, json::object given = {});

/// NAME and VALUE of assignments for what takes only texts: prompts and completions. Errors carry
/// kExitUsage.
Result<std::vector<std::pair<std::string, std::string>>> text_arguments(
    const std::vector<std::string>& assignments);

}  // namespace sluice

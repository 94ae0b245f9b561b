#pragma once

#include <string>

#include "core/error.hpp"
#include "engine/engine.hpp"
#include "json/json.hpp"

namespace sluice {

/// Decodes the parameters of a generation, which `run` and the tool `generate` take. Ignores
/// unknown members. Error: -32602 for a known member of the wrong type or out of range; it says
/// what is allowed.
Result<GenerationRequest> decode_generation(const json::object& params);

/// The JSON Schema of these parameters, for the tool's `inputSchema`.
std::string generation_schema();

/// The members `"finish_reason":...,"usage":{...},"timings":{...}` of a generation that has ended.
std::string completion_members(const Completion& completion);

/// The member `"phase":...` of a running generation, and the members that describe the phase.
std::string status_members(const GenerationStatus& status);

}  // namespace sluice

#pragma once

#include <string>

#include "core/error.hpp"
#include "engine/engine.hpp"
#include "json/json.hpp"

namespace sluice {

/// A generation's parameters, as `run` and the tool `generate` take them. Unknown members are
/// ignored; a known one of the wrong type or out of its range is -32602 and says what it may be.
Result<GenerationRequest> decode_generation(const json::object& params);

/// The JSON Schema of the same, for the tool's `inputSchema`.
std::string generation_schema();

/// `"finish_reason":...,"usage":{...},"timings":{...}` of a generation that has ended.
std::string completion_members(const Completion& completion);

/// `"phase":...` and what belongs to it, of a generation under way.
std::string status_members(const GenerationStatus& status);

}  // namespace sluice

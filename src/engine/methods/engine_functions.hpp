#pragma once

#include <memory>
#include <string>

#include "engine/engine.hpp"
#include "engine/methods/change_call.hpp"
#include "engine/methods/model_sessions.hpp"
#include "server/catalog/definition.hpp"

namespace sluice {

/// How an engine is offered.
struct FunctionOptions {
  std::string model_path = {};  // of the model that is served
  bool offers_tools = false;    // whether MCP clients see them as tools
  OperatorRights rights = {};
};

/// The caller of a tool. Its sessions are named by their handles alone, as the arguments of a tool
/// say all that it acts on (2026-07-28, Base Protocol: servers mint handles).
Principal named_caller(const Principal& caller);

/// Adds the functions of RKLLM's C interface, in three spellings each. What an engine does not have
/// is answered with an error that says so. `engine` must outlive every server that uses the
/// definition.
void add_engine_functions(ServerDefinition& definition, Engine& engine,
                          std::shared_ptr<ModelSessions> sessions, FunctionOptions options);

}  // namespace sluice

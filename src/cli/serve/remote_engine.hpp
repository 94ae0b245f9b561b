#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "cli/options/serve_config.hpp"
#include "core/error.hpp"
#include "engine/engine.hpp"

namespace sluice {

/// Whether a model is named by the URL of an API rather than as a file.
bool is_remote_model(std::string_view model);

/// Makes the engine of a model that another server runs. Its `model` is the URL of an API like that
/// of OpenAI, and behind # the name of the model, which may be left out if there is only one. The
/// key is what the variable `model_key` of the environment has, or for api.openai.com
/// OPENAI_API_KEY. Waits for the server. Errors carry an exit code.
Result<std::unique_ptr<Engine>> make_remote_engine(const ServeConfig::Engine& config);

/// Whether both are models of the same server.
bool have_same_server(const std::string& model, const std::string& other);

}  // namespace sluice

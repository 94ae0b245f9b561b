#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "engine/engine.hpp"
#include "sluice/model.hpp"

namespace sluice {

/// Whether a model is named by the URL of an API rather than as a file.
bool is_remote_model(std::string_view model);

/// Makes the engine of a model that another server runs. `model` is the URL of an API like that of
/// OpenAI, whose `api` is asked, and behind # the name of the model, which may be left out if there
/// is only one. The key is what the variable `key` of the environment has, or for api.openai.com
/// OPENAI_API_KEY. Waits for the server. Errors carry an exit code.
Result<std::unique_ptr<Engine>> make_remote_engine(const std::string& model, ModelApi api,
                                                   const std::string& key);

/// Whether both are models of the same server.
bool have_same_server(const std::string& model, const std::string& other);

}  // namespace sluice

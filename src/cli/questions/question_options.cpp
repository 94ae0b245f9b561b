#include "cli/questions/question_options.hpp"

#include <memory>
#include <utility>

#include "cli/options/command_line.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/questions/local_sampler.hpp"
#include "cli/questions/terminal_answers.hpp"
#include "cli/serve/engine_factory.hpp"

namespace sluice {

void add_question_options(Subcommand& command, QuestionOptions& options) {
  const std::string group = "Questions of the server";
  command.add_option("--sampling", &options.sampling,
                     {.text = "Whether a model of this machine answers what the server asks one; "
                              "ask needs a terminal",
                      .operand = "ask|allow|never",
                      .group = group,
                      .shows_default = true});
  command.add_option("--model", &options.model,
                     {.text = "The model (GGUF) that does. Default: the tiny built-in one",
                      .operand = "FILE",
                      .group = group});
}

Result<ClientOptions> client_answers(const QuestionOptions& options) {
  ClientOptions out = terminal_answers();
  const bool allows = options.sampling == "allow";
  if (options.sampling == "never") return out;
  if (!allows && options.sampling != "ask") {
    return fail(kExitUsage, "--sampling: give ask, allow or never");
  }
  if (!allows && !terminal_user()) return out;
  const std::string file = options.model.empty() ? built_in_model() : options.model;
  if (const auto checked = check_model_file(file); !checked) {
    const bool is_wanted = allows || !options.model.empty();
    return is_wanted ? Result<ClientOptions>(std::unexpected(checked.error())) : out;
  }
  ServeConfig config;
  config.engine.model = options.model;
  config.engine.slots = 1;
  const auto sampler = std::make_shared<LocalSampler>(
      std::move(config), allows ? SamplingConsent::always : SamplingConsent::refused);
  out.on_sampling = [sampler](const json::object& params) {
    auto answer = sampler->answer(params);
    if (!answer) throw Error(std::move(answer.error()));
    return *std::move(answer);
  };
  return out;
}

}  // namespace sluice

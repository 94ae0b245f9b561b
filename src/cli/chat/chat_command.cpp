#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

#include "cli/chat/chat.hpp"
#include "cli/chat/question.hpp"
#include "cli/options/command.hpp"
#include "cli/options/command_line.hpp"
#include "cli/options/config_file.hpp"
#include "cli/options/connection_options.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/options/process_environment.hpp"
#include "cli/options/serve_config.hpp"
#include "cli/serve/engine_factory.hpp"
#include "cli/serve/serve.hpp"
#include "cli/terminal/interrupts.hpp"
#include "cli/terminal/progress_line.hpp"
#include "cli/terminal/standard_input.hpp"
#include "cli/terminal/terminal.hpp"
#include "core/log/log.hpp"
#include "engine/generation_params.hpp"

namespace sluice {
namespace {

struct ChatArguments {
  ConnectionOptions client;
  std::string via = "sse";
  std::string system;
  std::vector<std::string> prompt;
  bool quiet = false;
  bool as_json = false;

  std::optional<double> temperature;
  std::optional<int> top_k;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> repeat_penalty;
  std::optional<std::int64_t> seed;
  std::optional<int> max_tokens;
  std::vector<std::string> stop;
  std::string schema_file;
  std::string grammar_file;
  std::vector<std::string> parameters;

  SettingValues engine;
  std::string config_file;
};

constexpr const char* kChatExamples =
    "Examples:\n"
    "  sluice chat                                      # talk to the tiny built-in model\n"
    "  sluice chat --model model.gguf                   # start a model here and talk to it\n"
    "  sluice chat --url http://127.0.0.1:8080          # talk to a running server\n"
    "  sluice chat --via ws \"Why is the sky blue?\"      # one answer over WebSocket\n"
    "  git diff | sluice chat \"Write a commit message\" > message\n"
    "  sluice chat --json --temperature 0 \"2+2?\" | jq -r .text\n"
    "\n"
    "On a terminal, Ctrl-C stops the answer and a second Ctrl-C leaves. The history is kept in\n"
    "$XDG_STATE_HOME/sluice. If standard input is not a terminal, it is read to its end, at most\n"
    "4 MiB, and is joined to the prompt. The answer goes to standard output, everything else to\n"
    "standard error.\n";

Result<std::string> read_file(const std::string& path) {
  constexpr std::size_t kMaxFile = std::size_t{1} << 20U;
  return read_small_file(path, kMaxFile);
}

/// The parameters of `run` that the flags set.
Result<json::object> request_params(const ChatArguments& arguments) {
  json::object params;
  const auto put = [&params](std::string_view name, const auto& value) {
    if (value) params[name] = *value;
  };
  put("temperature", arguments.temperature);
  put("top_k", arguments.top_k);
  put("top_p", arguments.top_p);
  put("min_p", arguments.min_p);
  put("repeat_penalty", arguments.repeat_penalty);
  put("seed", arguments.seed);
  put("max_tokens", arguments.max_tokens);
  if (!arguments.stop.empty()) {
    params["stop"] = json::array(arguments.stop.begin(), arguments.stop.end());
  }
  if (!arguments.schema_file.empty()) {
    const auto text = read_file(arguments.schema_file);
    if (!text) return std::unexpected(text.error());
    auto schema = parse_json(*text);
    if (!schema) {
      return fail(kExitUsage, "--schema: " + arguments.schema_file + ": " + schema.error().message);
    }
    params["json_schema"] = *std::move(schema);
  }
  if (!arguments.grammar_file.empty()) {
    const auto text = read_file(arguments.grammar_file);
    if (!text) return std::unexpected(text.error());
    params["grammar"] = *text;
  }
  for (const std::string& parameter : arguments.parameters) {
    const auto equals = parameter.find('=');
    auto value = parse_json(parameter.substr(std::min(equals, parameter.size() - 1) + 1));
    if (equals == std::string::npos || equals == 0 || !value) {
      return fail(kExitUsage, "--param: \"" + parameter + "\": give NAME=JSON, such as priority=5");
    }
    const std::string name = parameter.substr(0, equals);
    if (name == "messages" || name == "stream" || name == "window") {
      return fail(kExitUsage, "--param: chat sets " + name + " itself");
    }
    params[name] = *std::move(value);
  }
  // Known before a model is loaded.
  if (const auto decoded = decode_generation(params); !decoded) {
    std::string_view what = decoded.error().message;
    if (constexpr std::string_view kPrefix = "Invalid params: "; what.starts_with(kPrefix)) {
      what.remove_prefix(kPrefix.size());
    }
    return fail(kExitUsage, std::string(what));
  }
  return params;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out.append(out.empty() ? "" : " ").append(word);
  return out;
}

constexpr const char* kNoQuestion =
    "there is no question: give it as an argument (sluice chat \"Why is the sky blue?\") or on "
    "standard input";

/// The text of standard input, unless the user's terminal is there.
Result<std::string> piped_text(const ChatArguments& arguments, bool from_terminal) {
  if (from_terminal) return std::string();
  return read_input(STDIN_FILENO, kMaxInput, "a question", [&] {
    if (arguments.quiet) return;
    complain("waiting for the end of standard input; without it, add </dev/null");
  });
}

/// The question to ask if there is only one; nothing for a conversation on a terminal.
Result<std::optional<std::string>> single_question(const ChatArguments& arguments) {
  const bool typed = is_terminal(STDIN_FILENO);
  if (arguments.prompt.empty() && typed && is_terminal(STDOUT_FILENO) && !arguments.as_json) {
    return std::nullopt;
  }
  std::string words = joined(arguments.prompt);
  const bool reads_terminal = words == "-";
  if (reads_terminal) words.clear();
  const auto input = piped_text(arguments, typed && !reads_terminal);
  if (!input) return std::unexpected(input.error());
  std::string question = join_question(words, *input);
  if (question.empty()) return fail(kExitUsage, kNoQuestion);
  return question;
}

/// Starts a server for this program alone, on a free port of this machine.
Result<std::unique_ptr<LocalServer>> start_local_server(const ChatArguments& arguments) {
  auto loaded = load_serve_config(process_sources(arguments.engine, arguments.config_file));
  if (!loaded) return std::unexpected(loaded.error());
  ServeConfig& config = loaded->config;
  config.tcp = true;
  config.stdio = false;
  config.legacy_ports = false;
  config.unix_path.clear();
  config.listen = {{.host = "127.0.0.1", .port = 0}};
  config.threads = 1;
  config.tls_certificate.clear();
  config.tls_key.clear();
  config.access = {};
  // A question of the largest size, with all of its characters escaped.
  config.http.max_body = 8 * kMaxInput;
  config.http.max_total_buffers = 4 * config.http.max_body;
  config.shutdown_deadline = std::chrono::milliseconds(100);
  if (!arguments.quiet && runs_built_in_model(config)) {
    const Style style = Style::of(STDERR_FILENO);
    write_all(STDERR_FILENO,
              std::string(style.dim()) +
                  "Using the tiny built-in model; run a real one with --model FILE.gguf." +
                  std::string(style.reset()) + "\n");
  }
  ProgressLine progress(STDERR_FILENO, !arguments.quiet);
  return LocalServer::start(config, [&](const std::string& doing) { progress.show(doing); });
}

int complain_and_return(const Error& error) {
  complain(error.message);
  return error.code;
}

int run_chat(ChatArguments& arguments) {
  const auto via = parse_answer_via(arguments.via);
  if (!via) {
    return complain_and_return(
        {kExitUsage, "--via: \"" + arguments.via + "\": give poll, sse, ws or mcp"});
  }
  const bool has_model_options = !arguments.engine.empty() || !arguments.config_file.empty();
  if (!arguments.client.url.empty() && has_model_options) {
    return complain_and_return(
        {kExitUsage,
         "--url cannot be combined with options of the model: the server has its own model"});
  }
  complete_from_environment(arguments.client);
  auto params = request_params(arguments);
  if (!params) return complain_and_return(params.error());
  auto question = single_question(arguments);
  if (!question) return complain_and_return(question.error());

  set_logging(LogLevel::error, LogFormat::text, Style::of(STDERR_FILENO).coloured());
  std::unique_ptr<LocalServer> server;
  if (has_model_options || arguments.client.url.empty()) {
    auto started = start_local_server(arguments);
    if (!started) return complain_and_return(started.error());
    server = *std::move(started);
    arguments.client.url = server->url();
    arguments.client.key.clear();
  }
  auto address = server_address(arguments.client);
  if (!address) return complain_and_return(address.error());
  AnswerClient client(*std::move(address));
  Interrupts interrupts;  // not earlier, so that until now Ctrl-C simply ends the program
  Chat chat(client, interrupts, Conversation(arguments.system, *std::move(params)),
            {.via = *via, .quiet = arguments.quiet, .as_json = arguments.as_json});
  return *question ? chat.once(**question) : chat.interact();
}

void add_sampling_options(Subcommand& command, ChatArguments& arguments) {
  const auto add = [&](const char* name, OptionTarget target, const char* operand,
                       const char* text) {
    command.add_option(name, target, {.text = text, .operand = operand, .group = "Answer"});
  };
  const auto add_list = [&](const char* name, std::vector<std::string>& values, const char* operand,
                            const char* text) {
    command.add_repeatable(name, Keep::all,
                           [&values](const std::vector<std::string>& given) { values = given; },
                           {.text = text, .operand = operand, .group = "Answer"});
  };
  add("--system", &arguments.system, "TEXT",
      "System message, which the model reads before the conversation");
  add("--temperature", &arguments.temperature, "X",
      "Randomness of the answer; 0 always takes the likeliest token");
  add("--top-k", &arguments.top_k, "N", "Choose among the N likeliest tokens only; 0: among all");
  add("--top-p", &arguments.top_p, "X",
      "Choose among the likeliest tokens whose probabilities add up to X");
  add("--min-p", &arguments.min_p, "X",
      "Leave out tokens less than X times as likely as the best one");
  add("--repeat-penalty", &arguments.repeat_penalty, "X",
      "Values above 1 make the model repeat itself less");
  add("--seed", &arguments.seed, "N",
      "Seed of the random choices; the same seed gives the same answer");
  add("--max-tokens", &arguments.max_tokens, "N", "The most tokens that the answer may have");
  add_list("--stop", arguments.stop, "TEXT", "End the answer before this text; may be repeated");
  add("--schema", &arguments.schema_file, "FILE", "JSON Schema that the answer must follow");
  add("--grammar", &arguments.grammar_file, "FILE", "Grammar (GBNF) that the answer must follow");
  add_list("--param", arguments.parameters, "NAME=JSON",
           "Another parameter of the method run, such as priority=5; may be repeated");
}

}  // namespace

void add_chat_command(CommandLine& program) {
  const auto arguments = std::make_shared<ChatArguments>();
  Subcommand command = program.add_subcommand(
      "chat", "Talk to a model on a server, or to one started by this command", kChatExamples,
      [arguments] { return run_chat(*arguments); });
  command.add_option(
      "prompt", &arguments->prompt,
      {.text = "Ask this one question, together with what is piped in, and exit; - stands for "
               "standard input",
       .operand = "PROMPT"});
  command.add_option("--via", &arguments->via,
                     {.text = "How the answer is transferred; only mcp is not resumed if the "
                              "connection is lost",
                      .operand = "poll|sse|ws|mcp",
                      .group = "Connection",
                      .shows_default = true});
  add_connection_options(command, arguments->client);
  add_sampling_options(command, *arguments);
  command.add_flag("--json", arguments->as_json, {.text = "Print one JSON object instead of text"});
  command.add_flag("-q,--quiet", arguments->quiet,
                   {.text = "Do not print statistics after the answer"});
  add_engine_options(command, arguments->engine);
  command.add_option(
      "--config", &arguments->config_file,
      {.text = "Settings file for the model, as of sluice serve. SLUICE_CONFIG, default "
               "./sluice.toml if it exists",
       .operand = "FILE",
       .group = "Model"});
}

}  // namespace sluice

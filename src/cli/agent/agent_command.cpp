#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

#include "cli/agent/agent_trace.hpp"
#include "cli/agent/approval_questions.hpp"
#include "cli/agent/cost_options.hpp"
#include "cli/agent/event_printer.hpp"
#include "cli/agent/kept_session.hpp"
#include "cli/agent/server_label.hpp"
#include "cli/agent/tool_options.hpp"
#include "cli/agent/trace_stepper.hpp"
#include "cli/agent/tracing_option.hpp"
#include "cli/chat/question.hpp"
#include "cli/login/authorization_flags.hpp"
#include "cli/options/command.hpp"
#include "cli/options/command_line.hpp"
#include "cli/options/config_value.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/options/process_environment.hpp"
#include "cli/options/serve_config.hpp"
#include "cli/questions/terminal_answers.hpp"
#include "cli/remote/remote_server.hpp"
#include "cli/remote/stop_on_interrupt.hpp"
#include "cli/serve/engine_factory.hpp"
#include "cli/serve/remote_engine.hpp"
#include "cli/targets/process_targets.hpp"
#include "cli/terminal/interrupts.hpp"
#include "cli/terminal/progress_line.hpp"
#include "cli/terminal/standard_input.hpp"
#include "cli/terminal/terminal.hpp"
#include "core/clock.hpp"
#include "core/log/log.hpp"
#include "json/members.hpp"
#include "relay/relay_server.hpp"
#include "sluice/agent.hpp"

namespace sluice {
namespace {

constexpr const char* kAgentExamples =
    "Examples:\n"
    "  sluice agent \"stream up to 10 numbers, and tell me the last number of the sequence\"\n"
    "  sluice agent --server http://127.0.0.1:8080/mcp --policy pause \"Build it\"\n"
    "  sluice agent --server notes --server @work --model https://api.example/v1 \"What is due?\"\n"
    "  sluice agent --policy 'build:reactions=3,match=error|FAILED' \"Build it\" -- make-server\n"
    "  sluice agent --policy 'build{\"all\":true}:every=20' --grace build:1m \"Build\" -- "
    "make-server\n"
    "  sluice agent --session work \"What is due?\"; sluice agent --session work \"And then?\"\n"
    "  sluice agent --trace run.jsonl \"stream up to 5 numbers\"; sluice agent --replay run.jsonl\n"
    "\n"
    "Without a server, the tools are those of a demo: stream_numbers, add, get_secret_word and\n"
    "get_current_weather. What the model says is printed as it is, what tools write behind a bar.\n"
    "--policy says when the model is shown what a running tool has written: [TOOL:]WHEN, where\n"
    "WHEN is pass, chunk, every=N, pause[=TIME], match=REGEX, demand, idle or interrupt, and\n"
    "interrupt, min=TIME, reactions=N, tokens=N, wait=TIME and bytes=SIZE may follow behind "
    "commas. reactions=0 and tokens=0 are no limit.\n"
    "Behind TOOL may be a JSON object: the policy is then that of calls with these arguments.\n"
    "\n"
    "Tools that may change something are called if you agree, or with --yes. Ctrl-C ends the "
    "run.\n";

constexpr Duration kLook = std::chrono::milliseconds(50);
/// How long the model waits for a pause of the tool, if no --policy says otherwise.
constexpr Duration kUsualWait = std::chrono::milliseconds(500);
constexpr std::uint32_t kMostTurns = 1000;
constexpr std::uint32_t kMostImages = 100;

struct AgentArguments {
  std::vector<std::string> prompt;
  std::vector<std::string> servers;
  RemoteOptions remote;
  std::string system;
  ToolArguments tools;
  std::uint32_t max_turns = 20;
  std::string max_time;
  CostArguments costs;
  std::optional<double> temperature;
  std::optional<std::int64_t> seed;
  std::optional<std::string> session;
  bool is_new = false;
  std::string trace;
  std::string replay;
  double speed = 1;
  bool steps = false;
  bool for_ui = false;
  std::string otlp;
  std::string reaction_model;
  bool is_quiet = false;
  bool agrees = false;
  bool wants_parts = false;
  std::uint32_t max_images = 0;
  bool alternates = false;
  SettingValues engine;
  std::string config_file;
};

int complain_of_run(const Error& error) {
  complain("agent: " + error.message);
  return error.code;
}

/// What a run's last event means for the program.
int exit_code_for(const json::object& done) {
  const std::string_view status = text_at(done, "status");
  if (status == "completed") return kExitOk;
  if (status == "cancelled") return kExitInterrupted;
  std::string why(text_at(done, "reason"));
  if (why.empty()) why = "the run is " + std::string(status);
  if (why == "max_output_tokens") {
    why = "the model's last answer was cut off: it was too long, or the model's context is full";
  }
  complain("agent: " + why);
  return kExitFailure;
}

Result<AgentOptions> run_options(const AgentArguments& arguments, bool is_built_in) {
  AgentOptions options;
  options.instructions = arguments.system;
  // The built-in model knows updates from its training.
  options.explains_updates = !is_built_in;
  options.policy.when = ReactionPolicy::When::debounce;
  options.policy.max_wait = kUsualWait;
  if (auto read = read_tool_options(arguments.tools, options); !read) {
    return std::unexpected(std::move(read.error()));
  }
  if (arguments.max_turns == 0 || arguments.max_turns > kMostTurns) {
    return fail(kExitUsage, "--max-turns: give a number from 1 to 1000");
  }
  options.budget.turns = arguments.max_turns;
  if (!arguments.max_time.empty()) {
    const auto time = parse_time(arguments.max_time);
    if (!time) return fail(kExitUsage, "--max-time: give " + std::string(kTimes));
    options.budget.time = *time;
  }
  if (arguments.temperature) {
    options.sampling.temperature = static_cast<float>(*arguments.temperature);
  } else if (is_built_in) {
    options.sampling.temperature = 0.0F;
  }
  if (arguments.seed) {
    if (*arguments.seed < 0 || *arguments.seed > std::numeric_limits<std::uint32_t>::max()) {
      return fail(kExitUsage, "--seed: give a number from 0 to 4294967295");
    }
    options.sampling.seed = static_cast<std::uint32_t>(*arguments.seed);
  }
  if (auto read = read_costs(arguments.costs, !arguments.reaction_model.empty(), options); !read) {
    return std::unexpected(std::move(read.error()));
  }
  options.partial_results = arguments.wants_parts;
  options.alternates = arguments.alternates;
  if (arguments.max_images > kMostImages) {
    return fail(kExitUsage, "--images: give a number from 0 to 100");
  }
  options.max_images = arguments.max_images;
  if (!arguments.agrees) options.approval = unless_read_only;
  return options;
}

/// Connects to the servers. Throws Error with an exit code.
std::vector<AgentServer> connect_servers(const AgentArguments& arguments, std::stop_token stop) {
  if (arguments.servers.empty() && arguments.remote.command.empty()) {
    return {{.label = "demo", .client = connect(make_relay_server())}};
  }
  std::vector<AgentServer> servers;
  std::vector<std::string> labels;
  const auto open = [&](const TargetArguments& words, const std::string& word) {
    auto target = find_target(words);
    if (!target) throw std::move(target.error());
    for (const std::string& warning : target->warnings) complain(warning);
    ClientOptions options = terminal_answers();
    options.stop = stop;
    auto client = connect_to(*std::move(target), arguments.remote, std::move(options));
    if (!client) throw std::move(client.error());
    labels.push_back(server_label(word, labels));
    servers.push_back(
        {.label = labels.back(), .client = *std::move(client), .identity = server_identity(words)});
  };
  for (const std::string& word : arguments.servers) open({.word = word}, word);
  if (!arguments.remote.command.empty()) {
    open({.command = arguments.remote.command}, arguments.remote.command.front());
  }
  return servers;
}

/// Takes the events of a run until its end. `has_several_servers`: so questions name them.
int follow(Run& run, const AgentArguments& arguments, bool has_several_servers, TraceWriter& trace,
           Interrupts& interrupts) {
  EventPrinter printer(arguments.remote.as_json, arguments.for_ui);
  ApprovalQuestions questions(run, {.may_ask = !arguments.remote.as_json && !arguments.for_ui,
                                    .names_servers = has_several_servers});
  const SteadyClock clock;
  bool was_cancelled = false;
  bool prints = true;
  for (;;) {
    if (interrupts.take() && !std::exchange(was_cancelled, true)) {
      questions.close();
      printer.hurry();
      run.cancel();
    }
    const auto event = run.step(std::chrono::steady_clock::now() + kLook).event;
    if (!event) {
      if (!questions.wants_to_ask_again(clock.now())) continue;
      // Not in the middle of a line.
      if (const std::string text = printer.finish(); prints && !text.empty()) {
        const int printed = printer.print(text);
        prints = printed == kExitOk;
        if (!prints && printed != kExitInterrupted) return printed;
      }
      questions.ask_again();
      continue;
    }
    const json::object shown = run.to_object(*event);
    if (trace.is_open()) {
      if (const auto written = trace.write(shown, clock.now()); !written) {
        return complain_of_run(written.error());
      }
    }
    if (event->type == AgentEventType::tool_output_done) questions.withdraw(event->call_id);
    const bool asks = event->type == AgentEventType::approval_required;
    const bool is_last = event->type == AgentEventType::run_done;
    std::string text = printer.show(*event, shown, run.id());
    if (asks || is_last) text += printer.finish();
    if (prints && !text.empty()) {
      questions.on_output(clock.now());
      const int printed = printer.print(text);
      // If a reader lets an interrupt end that, the trace still gets the end of the run.
      prints = printed == kExitOk;
      if (!prints && printed != kExitInterrupted) return printed;
    }
    if (asks) questions.ask(shown);
    if (is_last) return prints ? exit_code_for(shown) : kExitInterrupted;
  }
}

int replay(const AgentArguments& arguments) {
  if (arguments.for_ui) {
    return complain_of_run({kExitUsage, "--ui-events does not go with --replay"});
  }
  const auto events = read_trace(arguments.replay);
  if (!events) return complain_of_run(events.error());
  if (arguments.steps) return step_through(*events);
  if (!(arguments.speed >= 0)) {
    return complain_of_run({kExitUsage, "--speed: give a number; 0 is at once"});
  }
  Interrupts interrupts;
  EventPrinter printer(arguments.remote.as_json, false);
  const SteadyClock clock;
  const TimePoint began = clock.now();
  for (const TracedEvent& each : *events) {
    while (arguments.speed > 0) {
      const auto at = std::chrono::duration_cast<Duration>(each.at / arguments.speed);
      const Duration left = began + at_most_forever(at) - clock.now();
      if (left <= Duration::zero()) break;
      if (interrupts.take()) return kExitInterrupted;
      usleep(static_cast<useconds_t>(
          std::chrono::duration_cast<std::chrono::microseconds>(std::min(left, kLook)).count()));
    }
    if (const int printed = printer.print(printer.show(each.event)); printed != kExitOk) {
      return printed;
    }
  }
  return printer.print(printer.finish());
}

/// `is_needed`: an empty prompt is an error.
Result<std::string> the_prompt(const AgentArguments& arguments, bool is_needed) {
  std::string words;
  for (const std::string& word : arguments.prompt) words += (words.empty() ? "" : " ") + word;
  std::string piped;
  if (!is_terminal(STDIN_FILENO)) {
    const auto input = read_input(STDIN_FILENO, kMaxInput, "a prompt", [&] {
      if (!arguments.is_quiet) {
        complain("waiting for the end of standard input; without it, add </dev/null");
      }
    });
    if (!input) return std::unexpected(input.error());
    piped = *input;
  }
  std::string prompt = join_question(words, piped);
  if (prompt.empty() && is_needed) {
    return fail(kExitUsage, "there is no prompt: give it as an argument or on standard input");
  }
  return prompt;
}

int run_agent(AgentArguments& arguments) {
  if (!arguments.replay.empty()) return replay(arguments);
  if (arguments.steps) {
    return complain_of_run({kExitUsage, "--step belongs to --replay FILE"});
  }
  set_logging(LogLevel::error, LogFormat::text, Style::of(STDERR_FILENO).coloured());
  auto loaded = load_serve_config(process_sources(arguments.engine, arguments.config_file));
  if (!loaded) return complain_of_run(loaded.error());
  if (!arguments.reaction_model.empty() && loaded->config.engine.kind == EngineKind::synthetic) {
    return complain_of_run({kExitUsage, "--reaction-model does not go with --engine synthetic"});
  }
  const bool is_built_in = runs_built_in_model(loaded->config);
  auto options = run_options(arguments, is_built_in);
  if (!options) return complain_of_run(options.error());
  KeptSession session;
  if (arguments.session) {
    auto opened =
        open_session(sessions_database(process_places()), *arguments.session, arguments.is_new);
    if (!opened) return complain_of_run(opened.error());
    session = *std::move(opened);
    options->store = session.store;
  } else if (arguments.is_new) {
    return complain_of_run({kExitUsage, "--new belongs to --session NAME"});
  }
  auto spans = span_exporter(arguments.otlp, environment);
  if (!spans) return complain_of_run(spans.error());
  options->spans = *std::move(spans);
  const TraceContext parent = trace_of_process(environment);
  const auto prompt = the_prompt(arguments, !session.is_begun);
  if (!prompt) return complain_of_run(prompt.error());
  TraceWriter trace;
  if (!arguments.trace.empty()) {
    if (const auto opened = trace.open(arguments.trace); !opened)
      return complain_of_run(opened.error());
  }
  std::vector<EngineHandle> engines;
  auto made = make_engine(loaded->config);
  if (!made) return complain_of_run(made.error());
  engines.push_back(*std::move(made));
  if (!arguments.reaction_model.empty()) {
    ServeConfig other = loaded->config;
    other.engine.model = arguments.reaction_model;
    other.engine.model_option = "--reaction-model";
    if (!have_same_server(other.engine.model, loaded->config.engine.model)) {
      other.engine.model_key = "SLUICE_REACTION_MODEL_KEY";
    }
    auto second = make_engine(other);
    if (!second) return complain_of_run(second.error());
    engines.push_back(*std::move(second));
    options->reaction_model = Model(engines.back().engine);
  }
  for (std::size_t i = 0; i < engines.size() && arguments.max_images > 0; ++i) {
    if (engines[i].engine->info().takes_images) continue;
    const std::string_view option = i == 0 ? "--model" : "--reaction-model";
    return complain_of_run(
        {kExitUsage, "--images needs a model of a server (" + std::string(option) + " URL)"});
  }
  std::optional<Agent> agent;
  {
    const StopOnInterrupt interrupt;
    const auto interrupted = [] { return Interrupts::is_pending(); };
    try {
      options->servers = connect_servers(arguments, interrupt.token());
    } catch (const Error& error) {
      return interrupted() ? kExitInterrupted : complain_of_run(error);
    }
    try {
      agent.emplace(Model(engines.front().engine), *options);
    } catch (const Error& error) {
      if (interrupted()) return kExitInterrupted;
      const bool is_usage = error.code == -32602;
      return complain_of_run({is_usage ? kExitUsage : exit_code_of(error), error.message});
    }
    if (const auto checked = check_tool_options(arguments.tools, agent->tools()); !checked) {
      return complain_of_run(checked.error());
    }
    ProgressLine progress(STDERR_FILENO, !arguments.is_quiet);
    for (const EngineHandle& each : engines) {
      for (;;) {
        const auto ready = each.wait_ready(kLook);
        if (!ready) return complain_of_run(ready.error());
        if (*ready) break;
        if (interrupted()) return kExitInterrupted;
        progress.show(each.not_ready());
      }
    }
    if (interrupted()) return kExitInterrupted;
  }
  Interrupts interrupts;
  int code = kExitOk;
  {
    try {
      // Not before it is known that there is a run to take its place.
      if (arguments.is_new) session.store->erase(session.name);
      const auto input = prompt->empty() ? std::nullopt : std::optional(*prompt);
      Run run = session.is_begun ? agent->resume(session.name, input, &parent)
                                 : agent->run(*prompt, session.name, &parent);
      code = follow(run, arguments, options->servers.size() > 1, trace, interrupts);
    } catch (const Error& error) {
      code = complain_of_run({kExitFailure, error.message});
    }
  }
  for (const EngineHandle& each : engines) each.engine->shutdown();
  return code;
}

}  // namespace

void add_agent_command(CommandLine& program) {
  const auto arguments = std::make_shared<AgentArguments>();
  Subcommand command = program.add_subcommand(
      "agent", "Let a model use the tools of MCP servers, and see their output while they run",
      kAgentExamples, [arguments] { return run_agent(*arguments); });
  command.add_option("prompt", &arguments->prompt,
                     {.text = "What to do, together with what is piped in", .operand = "PROMPT"});
  command.add_repeatable(
      "--server", Keep::all,
      [arguments](const std::vector<std::string>& given) { arguments->servers = given; },
      {.text = std::string(kTargetText) + "; may be repeated", .operand = "TARGET"});
  command.add_command_words(arguments->remote.command,
                            {.text = "A program that is a server", .operand = "COMMAND"});
  add_revision_option(command, arguments->remote);
  add_tool_options(command, arguments->tools);
  command.add_option("--reaction-model", &arguments->reaction_model,
                     {.text = "Another model, such as a cheaper one, for answers to what running "
                              "tools have written; SLUICE_REACTION_MODEL_KEY is its key, unless it "
                              "is at the server of --model",
                      .operand = "FILE|URL"});
  command.add_option("--system", &arguments->system,
                     {.text = "Instructions, which the model reads first", .operand = "TEXT"});
  command.add_option("--max-turns", &arguments->max_turns,
                     {.text = "The most answers of the model, those to running tools not counted",
                      .operand = "N",
                      .shows_default = true});
  command.add_option(
      "--max-time", &arguments->max_time,
      {.text = "The time after which the model is asked for a last answer, which may take 30 s",
       .operand = "TIME"});
  add_cost_options(command, arguments->costs);
  command.add_option(
      "--temperature", &arguments->temperature,
      {.text = "Randomness of the answers; 0 always takes the likeliest token", .operand = "X"});
  command.add_option("--seed", &arguments->seed,
                     {.text = "Seed of the random choices", .operand = "N"});
  command.add_flag("-y,--yes", arguments->agrees,
                   {.text = "Call tools that may change something without asking"});
  command.add_flag(
      "--partial-results", arguments->wants_parts,
      {.text = "Ask tools for parts of their results before these, by a draft that may "
               "change (SEP-2998)"});
  command.add_option(
      "--images", &arguments->max_images,
      {.text = "Show the model the last N images of tools, at most 100; for models of "
               "a server that see images. Default: 0, and it reads of what type each is",
       .operand = "N"});
  command.add_flag(
      "--alternating-roles", arguments->alternates,
      {.text = "Give the model's server no two messages of the user in a row, as the templates of "
               "some models demand; of a model in this process that is known"});
  command.add_flag("--json", arguments->remote.as_json,
                   {.text = "Print the events as lines of JSON; see docs/events.md"});
  command.add_flag("--ui-events", arguments->for_ui,
                   {.text = "Print the model's events, and what tools write as messages beside "
                            "them, as lines of JSON; see docs/events.md"});
  // An empty name, as of a variable that is not set, is not the same as none.
  command.add_repeatable(
      "--session", Keep::last,
      [arguments](const std::vector<std::string>& given) { arguments->session = given.back(); },
      {.text = "Keep the conversation under this name, and go on with it if it was kept before; "
               "without a prompt, with what had not ended",
       .operand = "NAME"});
  command.add_flag("--new", arguments->is_new, {.text = "Forget what the session has kept"});
  command.add_option("--trace", &arguments->trace,
                     {.text = "Record the events in a new file", .operand = "FILE"});
  command.add_option("--replay", &arguments->replay,
                     {.text = "Show a recorded run again; of at most 256 MiB", .operand = "FILE"});
  command.add_option("--speed", &arguments->speed,
                     {.text = "How many times as fast to show it; 0: at once",
                      .operand = "X",
                      .shows_default = true});
  command.add_flag("--step", arguments->steps,
                   {.text = "Show it event by event, forward and back, as keys say"});
  command.add_option("--otlp", &arguments->otlp,
                     {.text = "Send the run's spans to this OpenTelemetry collector (OTLP/HTTP), "
                              "such as http://localhost:4318; OTEL_EXPORTER_OTLP_ENDPOINT",
                      .operand = "URL"});
  command.add_flag("-q,--quiet", arguments->is_quiet, {.text = "Show no progress of loading"});
  add_engine_options(command, arguments->engine);
  command.add_option(
      "--config", &arguments->config_file,
      {.text = "Settings file for the model, as of sluice serve. SLUICE_CONFIG, default "
               "./sluice.toml if it exists",
       .operand = "FILE",
       .group = "Model"});
}

}  // namespace sluice

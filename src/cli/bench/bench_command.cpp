#include <chrono>
#include <memory>
#include <string>
#include <unistd.h>
#include <utility>

#include "cli/bench/bench_load.hpp"
#include "cli/bench/bench_probe.hpp"
#include "cli/bench/bench_results.hpp"
#include "cli/bench/bench_transport.hpp"
#include "cli/options/command.hpp"
#include "cli/options/command_line.hpp"
#include "cli/options/config_value.hpp"
#include "cli/options/connection_options.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/serve/machine.hpp"
#include "cli/terminal/interrupts.hpp"
#include "cli/terminal/progress_line.hpp"
#include "cli/terminal/terminal.hpp"
#include "net/loop/event_loop.hpp"

namespace sluice {
namespace {

struct BenchArguments {
  ConnectionOptions client;
  std::string mode = "sse";
  std::uint32_t streams = 64;
  std::uint32_t connections = 0;
  double rate = 0;
  std::string duration = "10s";
  std::int64_t count = 100;
  std::int64_t interval_us = 0;
  std::string prompt = "Count from 1 to 10.";  // the built-in model ends its answer to this
  std::int64_t max_tokens = 256;
  bool as_json = false;
  bool quiet = false;
};

constexpr const char* kBenchExamples =
    "Examples:\n"
    "  sluice serve --engine synthetic --streams-per-client 100000 --calls-per-client 100000 &\n"
    "  sluice bench --mode sse --streams 64 --count 1000 --interval-us -1\n"
    "  sluice bench --mode ws --streams 200 --connections 20 --count 500 --interval-us 20000\n"
    "  sluice bench --mode call --streams 64 --rate 5000    # a call is due every 200 us\n"
    "  sluice bench --url http://host:8080 --streams 4 --prompt \"Tell me a story\" --json\n"
    "\n"
    "Latency is measured from when a stream or call was due, so a server that falls behind\n"
    "cannot hide it. Added latency is the time from when the server makes a chunk to when it\n"
    "is read. It is only reported for the synthetic engine on this machine.\n";

constexpr const char* kDefaultUrl = "http://127.0.0.1:8080";
constexpr std::uint32_t kMaxStreams = 100'000;
constexpr double kMinRate = 0.001;
constexpr double kMaxRate = 1e7;
/// If this many units fail before the first one succeeds, the rest are expected to fail too.
constexpr std::uint64_t kHopeless = 100;

struct BenchSetup {
  ServerAddress address;
  BenchSubject subject;
  BenchPlan plan;
  BenchRequest request;
};

bool is_loopback(const Url& url) {
  return url.host == "localhost" || url.host == "::1" || url.host.starts_with("127.");
}

Result<BenchRequest> make_request(const BenchArguments& arguments) {
  BenchRequest request;
  if (arguments.mode == "call") {
    request.via = AnswerVia::mcp;
    request.tool = "echo";
    request.params = {{"text", arguments.prompt}};
    return request;
  }
  const auto via = parse_answer_via(arguments.mode);
  if (!via || *via == AnswerVia::mcp) {
    return fail(kExitUsage, "--mode: \"" + arguments.mode + "\": give poll, sse, ws or call");
  }
  request.via = *via;
  request.params = {{"prompt", arguments.prompt},
                    {"count", arguments.count},
                    {"interval_us", arguments.interval_us},
                    {"max_tokens", arguments.max_tokens}};
  return request;
}

Result<BenchSetup> set_up(BenchArguments arguments) {
  complete_from_environment(arguments.client);
  if (arguments.client.url.empty()) arguments.client.url = kDefaultUrl;
  auto address = server_address(arguments.client);
  if (!address) return std::unexpected(std::move(address.error()));
  auto request = make_request(arguments);
  if (!request) return std::unexpected(std::move(request.error()));
  const auto duration = parse_time(arguments.duration);
  if (!duration) {
    return fail(kExitUsage,
                "--duration: \"" + arguments.duration + "\": give " + std::string(kTimes));
  }
  if (arguments.streams < 1 || arguments.streams > kMaxStreams) {
    return fail(kExitUsage, "--streams: give a number from 1 to 100000");
  }
  if (arguments.rate != 0 && !(arguments.rate >= kMinRate && arguments.rate <= kMaxRate)) {
    return fail(
        kExitUsage,
        "--rate: give a number of starts per second from 0.001 to 10000000; 0 is as fast as "
        "possible");
  }
  const std::uint32_t connections =
      arguments.connections == 0 ? arguments.streams : arguments.connections;
  if (connections > arguments.streams ||
      (connections < arguments.streams && request->via != AnswerVia::ws)) {
    return fail(kExitUsage,
                "--connections: only in mode ws can streams share connections; give at most one "
                "connection per stream there, and leave the option out in other modes");
  }
  BenchSetup setup{
      .address = *std::move(address), .subject = {}, .plan = {}, .request = *std::move(request)};
  setup.subject = {.url = arguments.client.url,
                   .mode = arguments.mode,
                   .streams = arguments.streams,
                   .connections = connections,
                   .rate = arguments.rate};
  setup.plan.slots = arguments.streams;
  setup.plan.rate = arguments.rate;
  setup.plan.duration = *duration;
  setup.plan.clock_is_shared = is_loopback(setup.address.base);
  return setup;
}

/// Runs a load test, shows its progress on the terminal and stops it on Ctrl-C.
class BenchRun {
 public:
  BenchRun(const BenchSetup& setup, bool shows_progress)
      : setup_(&setup),
        progress_(STDERR_FILENO, shows_progress),
        transport_(loop_, setup.address, setup.request, setup.plan.slots,
                   setup.subject.connections),
        load_(loop_, setup.plan,
              [this](std::uint32_t slot, AnswerSink& sink) { transport_.begin(slot, sink); }) {}

  /// Returns when the test is over.
  const BenchResults& run() {
    loop_.post([this] {
      load_.start([this] { end(); });
      watch();
    });
    loop_.run();
    progress_.clear();
    return load_.results();
  }

  [[nodiscard]] bool interrupted() const { return interrupted_; }
  /// Whether the run was stopped because every unit failed.
  [[nodiscard]] bool hopeless() const { return hopeless_; }

 private:
  void watch() {
    constexpr Duration kTick = std::chrono::milliseconds(100);
    constexpr int kTicksPerLine = 10;
    if (ended_) return;
    const BenchResults& results = load_.results();
    interrupted_ = interrupts_.take();
    hopeless_ = results.completed == 0 && results.failed >= kHopeless;
    if (interrupted_ || hopeless_) {
      load_.stop();
      return;
    }
    if (++ticks_ % kTicksPerLine == 0) progress_.show(progress_line(setup_->subject, results));
    loop_.schedule_at(loop_.clock().now() + kTick, [this] { watch(); });
  }

  void end() {
    // How long the last aborts may take to be sent.
    constexpr Duration kFarewell = std::chrono::milliseconds(100);
    ended_ = true;
    transport_.cancel_all();
    loop_.schedule_at(loop_.clock().now() + kFarewell, [this] { loop_.stop(); });
  }

  const BenchSetup* setup_;
  ProgressLine progress_;
  Interrupts interrupts_;
  EventLoop loop_;
  BenchTransport transport_;
  BenchLoad load_;
  int ticks_ = 0;
  bool interrupted_ = false;
  bool hopeless_ = false;
  bool ended_ = false;
};

int run_bench(const BenchArguments& arguments) {
  const auto setup = set_up(arguments);
  if (!setup) {
    complain(setup.error().message);
    return setup.error().code;
  }
  const std::uint64_t files = files_for_connections(setup->subject.connections);
  if (raise_open_files(files) < files) {
    complain("the limit of open files is too low for --connections; see sluice doctor");
    return kExitFailure;
  }
  if (const auto can = probe(setup->address, setup->request); !can) {
    complain(can.error().message);
    return can.error().code;
  }
  BenchRun run(*setup, !arguments.quiet);
  const BenchResults& results = run.run();
  const std::string report = arguments.as_json ? json_report(setup->subject, results)
                                               : text_report(setup->subject, results);
  if (const int printed = print(report); printed != kExitOk) return printed;
  if (run.interrupted()) return kExitInterrupted;
  const std::string unit = arguments.mode == "call" ? "calls" : "streams";
  if (results.failed > 0) {
    complain(std::to_string(results.failed) + " " + unit + " failed");
    return kExitFailure;
  }
  if (results.completed == 0) {
    complain("no " + unit + " ended in time; give a longer --duration");
    return kExitFailure;
  }
  return kExitOk;
}

}  // namespace

void add_bench_command(CommandLine& program) {
  const auto arguments = std::make_shared<BenchArguments>();
  Subcommand command = program.add_subcommand(
      "bench", "Put a server under load with streams or calls and measure it", kBenchExamples,
      [arguments] { return run_bench(*arguments); });
  const auto add = [&](const char* name, OptionTarget target, const char* operand, const char* text,
                       bool shows_default = true) {
    command.add_option(
        name, target,
        {.text = text, .operand = operand, .group = "Load", .shows_default = shows_default});
  };
  add("--mode", &arguments->mode, "poll|sse|ws|call",
      "How streams are read; call makes calls of the tool echo instead");
  add("--streams", &arguments->streams, "N", "How many streams or calls run at the same time");
  add("--connections", &arguments->connections, "N",
      "Connections that the streams share, in mode ws; by default one each", false);
  add("--rate", &arguments->rate, "R",
      "How many to start per second, even if earlier ones are slow; 0: as fast as possible");
  add("--duration", &arguments->duration, "TIME", "How long to keep starting streams or calls");
  add("--count", &arguments->count, "N", "Chunks per stream, from the synthetic engine");
  add("--interval-us", &arguments->interval_us, "US",
      "Microseconds between chunks; 0: none; -1: none, but each chunk is sent separately");
  add("--prompt", &arguments->prompt, "TEXT",
      "The prompt for the model, or the text for the echo call");
  add("--max-tokens", &arguments->max_tokens, "N", "The most tokens that a model may answer with");
  add_connection_options(command, arguments->client);
  command.add_flag("--json", arguments->as_json, {.text = "Print the results as JSON"});
  command.add_flag("-q,--quiet", arguments->quiet, {.text = "Do not show progress"});
}

}  // namespace sluice

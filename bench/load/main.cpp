#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <sys/resource.h>

#include "awake.hpp"
#include "links/routes.hpp"
#include "modes/modes.hpp"

namespace sluice::bench {

void measure(Loop& loop, Tally& tally, const Options& options,
             const std::function<void()>& before_report) {
  const auto nanoseconds = [](double seconds) { return static_cast<std::int64_t>(seconds * 1e9); };
  loop.run_until(now_ns() + nanoseconds(options.warmup_s));
  tally.restart();
  const CpuTimes begin = cpu_times(options.server_pid);
  const std::int64_t started = now_ns();
  if (tally.errors < kTooManyErrors) loop.run_until(started + nanoseconds(options.seconds));
  const double elapsed = static_cast<double>(now_ns() - started) / 1e9;
  const CpuTimes end = cpu_times(options.server_pid);
  if (before_report) before_report();
  print_report(options, tally, elapsed, begin, end, nullptr);
}

void report_error(Loop& loop, Tally& tally, std::string_view what) {
  tally.error(what);
  if (tally.errors >= kTooManyErrors) loop.stop();
}

}  // namespace sluice::bench

namespace {

/// Raises the limit of descriptors to the hard limit, because there may be thousands of
/// connections.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int main(int argc, char** argv) {
  namespace bench = sluice::bench;
  if (argc >= 2 && (std::string_view(argv[1]) == "--help" || std::string_view(argv[1]) == "-h")) {
    std::fputs(bench::kUsage, stdout);
    return 0;
  }
  if (argc == 2 && std::string_view(argv[1]) == "routes") {
    bench::print_routes();
    return 0;
  }
  std::signal(SIGPIPE, SIG_IGN);  // the failing write reports it
  try {
    const bench::Options options = bench::parse_options(argc, argv);
    raise_descriptor_limit();
    std::optional<bench::AwakeProcessors> awake;
    if (options.keep_awake) awake.emplace();
    const std::map<std::string_view, std::function<std::uint64_t(const bench::Options&)>> modes = {
        {"echo", bench::run_echo},           {"stream", bench::run_streams},
        {"paced", bench::run_streams},       {"poll", bench::run_poll},
        {"idle", bench::run_idle},           {"sessions", bench::run_sessions},
        {"fanout", bench::run_fanout},       {"idle-sessions", bench::run_idle_sessions},
        {"listeners", bench::run_listeners},
    };
    const auto mode = modes.find(options.mode);
    if (mode == modes.end()) throw std::runtime_error("unknown mode; see --help");
    return mode->second(options) == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sluice_bench_load: %s\n", error.what());
    return 2;
  }
}

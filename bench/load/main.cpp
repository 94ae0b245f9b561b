#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <stdexcept>
#include <string_view>
#include <sys/resource.h>

#include "modes.hpp"

namespace sluice::bench {

void measure(Loop& loop, Tally& tally, const Options& options) {
  const auto nanoseconds = [](double seconds) { return static_cast<std::int64_t>(seconds * 1e9); };
  loop.run_until(now_ns() + nanoseconds(options.warmup_s));
  tally.restart();
  const CpuTimes begin = cpu_times(options.server_pid);
  const std::int64_t started = now_ns();
  if (tally.errors < kTooManyErrors) loop.run_until(started + nanoseconds(options.seconds));
  const double elapsed = static_cast<double>(now_ns() - started) / 1e9;
  print_report(options, tally, elapsed, begin, cpu_times(options.server_pid), nullptr);
}

void report_error(Loop& loop, Tally& tally, std::string_view what) {
  tally.error(what);
  if (tally.errors >= kTooManyErrors) loop.stop();
}

}  // namespace sluice::bench

namespace {

/// Thousands of connections need as many descriptors; the hard limit is what we may have.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace sluice::bench;
  if (argc >= 2 && (std::string_view(argv[1]) == "--help" || std::string_view(argv[1]) == "-h")) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  try {
    const Options options = parse_options(argc, argv);
    raise_descriptor_limit();
    const std::map<std::string_view, std::function<std::uint64_t(const Options&)>> modes = {
        {"echo", run_echo},
        {"stream", run_streams},
        {"paced", run_streams},
        {"poll", run_poll},
        {"idle", run_idle},
        {"sessions", run_sessions},
        {"fanout",
         [](const Options& o) { return o.subscribe_path.empty() ? run_fanout(o) : run_broker(o); }},
    };
    const auto mode = modes.find(options.mode);
    if (mode == modes.end()) throw std::runtime_error("unknown mode; see --help");
    return mode->second(options) == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sluice_bench_load: %s\n", error.what());
    return 2;
  }
}

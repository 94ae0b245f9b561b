#pragma once

#include <functional>

#include "loop.hpp"
#include "options.hpp"
#include "tally.hpp"

namespace sluice::bench {

// Each mode measures, prints its report and returns the number of errors. They throw
// std::runtime_error where nothing can be measured.

std::uint64_t run_echo(const Options& options);
std::uint64_t run_streams(const Options& options);  // stream and paced
std::uint64_t run_poll(const Options& options);
std::uint64_t run_fanout(const Options& options);
std::uint64_t run_idle(const Options& options);
std::uint64_t run_sessions(const Options& options);
std::uint64_t run_idle_sessions(const Options& options);
std::uint64_t run_listeners(const Options& options);

/// So many errors end a run.
inline constexpr std::uint64_t kTooManyErrors = 100;

/// Runs the loop for the warm-up, then for the measured time, and reports it; `before_report` may
/// complete the tally.
void measure(Loop& loop, Tally& tally, const Options& options,
             const std::function<void()>& before_report = {});

/// Counts an error; kTooManyErrors of them end the run.
void report_error(Loop& loop, Tally& tally, std::string_view what);

}  // namespace sluice::bench

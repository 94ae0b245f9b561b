#pragma once

#include <functional>

#include "loop.hpp"
#include "options.hpp"
#include "tally.hpp"

namespace sluice::bench {

// Each mode measures, prints its report and returns the number of errors. It throws
// std::runtime_error if nothing can be measured.

std::uint64_t run_echo(const Options& options);
std::uint64_t run_streams(const Options& options);  // stream and paced
std::uint64_t run_poll(const Options& options);
std::uint64_t run_fanout(const Options& options);
std::uint64_t run_idle(const Options& options);
std::uint64_t run_sessions(const Options& options);
std::uint64_t run_idle_sessions(const Options& options);
std::uint64_t run_listeners(const Options& options);

/// The number of errors that ends a run.
inline constexpr std::uint64_t kTooManyErrors = 100;

/// Runs the loop for the warm-up and then for the measured time, and reports the latter.
/// `before_report` may complete the tally.
void measure(Loop& loop, Tally& tally, const Options& options,
             const std::function<void()>& before_report = {});

/// Counts an error; kTooManyErrors of them end the run.
void report_error(Loop& loop, Tally& tally, std::string_view what);

}  // namespace sluice::bench

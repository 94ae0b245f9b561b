#include "tally.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>
#include <utility>

namespace sluice::bench {
namespace {

void print_histogram(const char* name, const Histogram& histogram) {
  if (histogram.total() == 0) return;
  const auto us = [](std::uint64_t ns) { return static_cast<double>(ns) / 1e3; };
  std::printf(R"(,"%s_us":{"p50":%.1f,"p90":%.1f,"p99":%.1f,"p999":%.1f,"max":%.1f})", name,
              us(histogram.quantile(0.5)), us(histogram.quantile(0.9)),
              us(histogram.quantile(0.99)), us(histogram.quantile(0.999)), us(histogram.max()));
}

/// Prints how evenly the units were distributed over the connections: those of the slowest, and the
/// mean.
void print_fairness(const std::vector<std::uint64_t>& by_connection, double elapsed_s) {
  if (by_connection.size() < 2) return;
  const auto slowest = static_cast<double>(std::ranges::min(by_connection));
  const auto sum = std::accumulate(by_connection.begin(), by_connection.end(), std::uint64_t{0});
  const double mean = static_cast<double>(sum) / static_cast<double>(by_connection.size());
  std::printf(R"(,"connection":{"slowest_per_s":%.1f,"mean_per_s":%.1f})", slowest / elapsed_s,
              mean / elapsed_s);
  std::printf(R"(,"slowest_share":%.4f)", mean > 0 ? slowest / mean : 0.0);
}

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out.push_back('\\');
    out.push_back(static_cast<unsigned char>(c) < 0x20 ? ' ' : c);
  }
  out.push_back('"');
  return out;
}

}  // namespace

void Tally::restart() {
  auto fresh = std::make_unique<Tally>();
  fresh->errors = errors;
  fresh->first_error = std::move(first_error);
  fresh->by_connection.resize(by_connection.size());
  *this = std::move(*fresh);
}

void print_report(const Options& options, const Tally& tally, double elapsed_s,
                  const CpuTimes& begin, const CpuTimes& end, const MemoryReport* memory) {
  const double server = end.server_s - begin.server_s;
  const double load = end.load_s - begin.load_s;
  const double foreign = end.machine_s - begin.machine_s - server - load;
  const auto units = static_cast<double>(tally.units);
  std::printf(R"({"mode":%s,"connections":%zu,"seconds":%.3f,"units":%llu,"replies":%llu)",
              json_text(options.mode).c_str(), options.connections, elapsed_s,
              static_cast<unsigned long long>(tally.units),
              static_cast<unsigned long long>(tally.replies));
  std::printf(R"(,"units_per_s":%.1f,"bytes":%llu,"stalled":%llu,"errors":%llu,"first_error":%s)",
              elapsed_s > 0 ? units / elapsed_s : 0.0, static_cast<unsigned long long>(tally.bytes),
              static_cast<unsigned long long>(tally.stalled),
              static_cast<unsigned long long>(tally.errors), json_text(tally.first_error).c_str());
  std::printf(R"(,"load_cores":%.3f,"foreign_cores":%.3f)", load / elapsed_s, foreign / elapsed_s);
  if (options.server_pid != 0) {
    std::printf(R"(,"server_cores":%.3f)", server / elapsed_s);
    if (tally.units != 0) {
      std::printf(R"(,"server_us_per_unit":%.4f,"server_user_us_per_unit":%.4f)",
                  server * 1e6 / units, (end.server_user_s - begin.server_user_s) * 1e6 / units);
    }
  }
  print_histogram("round_trip", tally.round_trip);
  print_histogram("added", tally.added);
  print_histogram("schedule", tally.schedule);
  print_histogram("gap", tally.gap);
  print_fairness(tally.by_connection, elapsed_s);
  if (memory != nullptr) {
    const auto each = [&](std::int64_t before, std::int64_t after) {
      return static_cast<double>(after - before) / static_cast<double>(options.connections);
    };
    std::printf(R"(,"memory":{"resident_before":%lld,"resident_after":%lld,"anonymous_before":%lld)"
                R"(,"anonymous_after":%lld,"resident_each":%.1f,"anonymous_each":%.1f})",
                static_cast<long long>(memory->before.resident),
                static_cast<long long>(memory->after.resident),
                static_cast<long long>(memory->before.anonymous),
                static_cast<long long>(memory->after.anonymous),
                each(memory->before.resident, memory->after.resident),
                each(memory->before.anonymous, memory->after.anonymous));
  }
  std::printf("}\n");
  std::fflush(stdout);
}

}  // namespace sluice::bench

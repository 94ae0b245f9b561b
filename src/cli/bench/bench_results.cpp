#include "cli/bench/bench_results.hpp"

#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <utility>

#include "cli/terminal/terminal.hpp"
#include "json/json.hpp"

namespace sluice {
namespace {

constexpr std::array<std::pair<std::string_view, double>, 4> kPercentiles = {
    {{"p50", 50}, {"p90", 90}, {"p99", 99}, {"p999", 99.9}}};

double per_second(std::uint64_t count, Duration elapsed) {
  return elapsed.count() > 0 ? static_cast<double>(count) / to_seconds(elapsed) : 0;
}

double milliseconds(std::uint64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1e6;
}

template <class... Args>
void append_formatted(std::string& out, const char* format, Args... args) {
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(), format, args...);
  out.append(text.data());
}

/// 1234567.8 as "1,234,568".
std::string grouped(double number) {
  std::string digits;
  append_number(digits, static_cast<std::uint64_t>(number + 0.5));
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), ",");
  }
  return digits;
}

std::string short_time(std::uint64_t nanoseconds) {
  std::string out;
  const auto value = static_cast<double>(nanoseconds);
  if (nanoseconds < 1'000'000) {
    append_formatted(out, "%.1f us", value / 1e3);
  } else if (nanoseconds < 1'000'000'000) {
    append_formatted(out, "%.2f ms", value / 1e6);
  } else {
    append_formatted(out, "%.2f s", value / 1e9);
  }
  return out;
}

void append_row(std::string& out, std::string_view name, const Histogram& histogram) {
  if (histogram.count() == 0) return;
  append_formatted(out, "  %-16.*s", static_cast<int>(name.size()), name.data());
  for (const auto& [label, percent] : kPercentiles) {
    append_formatted(out, "%11s", short_time(histogram.percentile(percent)).c_str());
  }
  append_formatted(out, "%11s%11s\n", short_time(histogram.max()).c_str(),
                   short_time(static_cast<std::uint64_t>(histogram.mean())).c_str());
}

json::object to_object(const Histogram& histogram) {
  json::object out;
  for (const auto& [label, percent] : kPercentiles) {
    out[label] = milliseconds(histogram.percentile(percent));
  }
  out["max"] = milliseconds(histogram.max());
  out["mean"] = histogram.mean() / 1e6;
  out["count"] = histogram.count();
  return out;
}

std::string_view unit(const BenchSubject& subject) {
  return subject.mode == "call" ? "calls" : "streams";
}

}  // namespace

void BenchResults::count_error(std::string_view message) {
  ++failed;
  const auto found = errors.find(message);
  if (found != errors.end()) {
    ++found->second;
  } else if (errors.size() < kMaxErrors) {
    errors.emplace(message, 1);
  }
}

std::string text_report(const BenchSubject& subject, const BenchResults& results) {
  const std::string units(unit(subject));
  std::string out;
  append_formatted(out, "%s at %s, %u at a time over %u connections", units.c_str(),
                   subject.url.substr(0, 80).c_str(), subject.streams, subject.connections);
  if (subject.rate > 0) append_formatted(out, ", %g due per second", subject.rate);
  append_formatted(out, ", %.1f s\n\n", to_seconds(results.elapsed));
  const auto row = [&out](const std::string& name, std::uint64_t count, double rate) {
    append_formatted(out, "  %-16s%14s%14s/s\n", name.c_str(),
                     grouped(static_cast<double>(count)).c_str(), grouped(rate).c_str());
  };
  row(units, results.completed, per_second(results.completed, results.elapsed));
  row("chunks", results.chunks, per_second(results.chunks, results.elapsed));
  row("bytes of text", results.bytes, per_second(results.bytes, results.elapsed));
  if (results.first.count() > 0) {
    out.append(
        "\n                          p50        p90        p99      p99.9        max       mean\n");
  }
  append_row(out, "first chunk", results.first);
  append_row(out, subject.mode == "call" ? "whole call" : "whole stream", results.complete);
  append_row(out, "added latency", results.added);
  if (results.late > 0) {
    append_formatted(out, "\n%s %s were due but could not be started: the rate is too high\n",
                     grouped(static_cast<double>(results.late)).c_str(), units.c_str());
  }
  if (results.retries > 0) {
    append_formatted(out, "\n%s connections were lost and resumed\n",
                     grouped(static_cast<double>(results.retries)).c_str());
  }
  if (results.failed > 0) {
    append_formatted(out, "\n%s %s failed:\n", grouped(static_cast<double>(results.failed)).c_str(),
                     units.c_str());
    for (const auto& [message, count] : results.errors) {
      append_formatted(out, "  %8llu  ", static_cast<unsigned long long>(count));
      out.append(one_line(message)).append("\n");
    }
  }
  return out;
}

std::string json_report(const BenchSubject& subject, const BenchResults& results) {
  json::object errors;
  for (const auto& [message, count] : results.errors) errors[message] = count;
  json::object out{{"url", subject.url},
                   {"mode", subject.mode},
                   {"streams", subject.streams},
                   {"connections", subject.connections},
                   {"rate", subject.rate},
                   {"elapsed_s", to_seconds(results.elapsed)},
                   {"started", results.started},
                   {"completed", results.completed},
                   {"failed", results.failed},
                   {"late", results.late},
                   {"retries", results.retries},
                   {"completed_per_s", per_second(results.completed, results.elapsed)},
                   {"chunks", results.chunks},
                   {"chunks_per_s", per_second(results.chunks, results.elapsed)},
                   {"bytes", results.bytes},
                   {"first_ms", to_object(results.first)},
                   {"complete_ms", to_object(results.complete)},
                   {"errors", std::move(errors)}};
  if (results.added.count() > 0) out["added_ms"] = to_object(results.added);
  return to_json(out) + "\n";
}

std::string progress_line(const BenchSubject& subject, const BenchResults& results) {
  std::string out;
  append_formatted(out, "%3.0f s  %12s %s  %12s chunks/s", to_seconds(results.elapsed),
                   grouped(static_cast<double>(results.completed)).c_str(),
                   std::string(unit(subject)).c_str(),
                   grouped(per_second(results.chunks, results.elapsed)).c_str());
  const Histogram& shown = results.added.count() > 0 ? results.added : results.first;
  if (shown.count() > 0) {
    append_formatted(out, "  p99 %s", short_time(shown.percentile(kPercentiles[2].second)).c_str());
  }
  if (results.failed > 0) {
    append_formatted(out, "  %llu failed", static_cast<unsigned long long>(results.failed));
  }
  return out;
}

std::uint64_t chunk_time(std::string_view text) {
  constexpr std::string_view kName = "\"t_ns\":";
  const auto at = text.find(kName);
  if (at == std::string_view::npos) return 0;
  std::uint64_t time = 0;
  std::from_chars(text.data() + at + kName.size(), text.data() + text.size(), time);
  return time;
}

}  // namespace sluice

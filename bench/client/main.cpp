// What Sluice's client costs: scripts/bench runs this program and bench/peers/client.mjs, which
// does the same with the official TypeScript client, against the same server.
//
//   sluice_bench_client calls URL CALLS WARMUP SECONDS
//     CALLS at once, each replaced when it is answered
//   sluice_bench_client streams URL CALLS WARMUP SECONDS
//     CALLS at once that stream 50 chunks a second
//   sluice_bench_client open URL CALLS
//     the memory of CALLS that are open, and silent after their first chunk
//
// It prints a line of JSON.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <exception>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <utility>
#include <vector>

#include <boost/json/serialize.hpp>

#include "sluice/client.hpp"

namespace {

using sluice::Client;
using sluice::PendingCall;
using sluice::ToolReply;
namespace json = sluice::json;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kLongestUs = 60'000'000;  // that the engine takes
constexpr std::int64_t kIntervalUs = 20'000;     // 50 chunks a second
/// Calls that are opened at a time, the first of them before memory is measured.
constexpr std::size_t kAtATime = 16;

/// CPU time of this process, in microseconds.
double cpu_us() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto us = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
  };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

/// Resident memory of this process, in bytes.
std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/smaps_rollup");
  std::string name;
  while (file >> name) {
    std::int64_t kib = 0;
    if (name == "Rss:" && file >> kib) return kib * 1024;
  }
  return 0;
}

/// Counts units between the end of the warm-up and the end of the measured time.
class Measure {
 public:
  Measure(double warmup_s, double seconds)
      : begin_(Clock::now() + std::chrono::duration<double>(warmup_s)),
        end_(begin_ + std::chrono::duration<double>(seconds)) {}

  /// Returns false if the time is over.
  bool add(std::uint64_t units) {
    const auto now = Clock::now();
    if (!is_measuring_ && now >= begin_) {
      is_measuring_ = true;
      begin_ = now;
      cpu_ = cpu_us();
      units = 0;
    }
    if (is_measuring_) units_ += units;
    last_ = now;
    return now < end_;
  }
  void print() const {
    const double seconds = std::chrono::duration<double>(last_ - begin_).count();
    const double cpu = cpu_us() - cpu_;
    const auto units = static_cast<double>(units_);
    std::cout << json::object{{"units", units_},
                              {"per_second", units / seconds},
                              {"cpu_us_each", cpu / units},
                              {"cores", cpu / 1e6 / seconds}}
              << "\n";
  }

 private:
  std::chrono::time_point<Clock, std::chrono::duration<double>> begin_;
  std::chrono::time_point<Clock, std::chrono::duration<double>> end_;
  Clock::time_point last_ = Clock::now();
  bool is_measuring_ = false;
  double cpu_ = 0;
  std::uint64_t units_ = 0;
};

PendingCall<ToolReply> stream(Client& client, std::int64_t interval_us) {
  return client.call("stream_numbers", {{"count", 1'000'000}, {"interval_us", interval_us}},
                     {.idle_timeout = {}});
}

void run_calls(Client& client, std::size_t count, Measure measure) {
  const std::string text(32, 'x');
  std::deque<PendingCall<ToolReply>> open;
  while (open.size() < count) open.push_back(client.call("echo", {{"text", text}}));
  do {
    if (open.front().result().text() != text) throw std::runtime_error("a wrong answer");
    open.pop_front();
    open.push_back(client.call("echo", {{"text", text}}));
  } while (measure.add(1));
  measure.print();
}

void run_streams(Client& client, std::size_t count, Measure measure) {
  std::vector<PendingCall<ToolReply>> open;
  for (std::size_t i = 0; i < count; ++i) open.push_back(stream(client, kIntervalUs));
  double expected = 0;
  do {
    // One chunk of each, in turn: none may be missing, and none may come twice.
    ++expected;
    for (PendingCall<ToolReply>& each : open) {
      const auto event = each.next();
      if (!event || event->progress != expected) throw std::runtime_error("a wrong chunk");
    }
  } while (measure.add(count));
  measure.print();
}

void run_open(Client& client, std::size_t count) {
  std::vector<PendingCall<ToolReply>> open;
  const auto grow_to = [&](std::size_t size) {
    while (open.size() < size) {
      const std::size_t begin = open.size();
      const std::size_t end = std::min(begin + kAtATime, size);
      while (open.size() < end) open.push_back(stream(client, kLongestUs));
      for (std::size_t i = begin; i < end; ++i) {
        if (!open[i].next()) throw std::runtime_error("a call has ended");
      }
    }
    return resident_bytes();
  };
  open.reserve(kAtATime + count);
  const std::int64_t before = grow_to(kAtATime);
  const std::int64_t after = grow_to(kAtATime + count);
  std::cout << json::object{{"units", count},
                            {"bytes_each",
                             static_cast<double>(after - before) / static_cast<double>(count)}}
            << "\n";
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::string> words(arguments + 1, arguments + count);
  if (words.size() != 3 && words.size() != 5) {
    std::cerr << "usage: sluice_bench_client calls|streams|open URL CALLS [WARMUP SECONDS]\n";
    return 2;
  }
  try {
    Client client = sluice::connect(words[1], {.max_requests = 20'000});
    const auto calls = static_cast<std::size_t>(std::stoul(words[2]));
    if (words[0] == "open") {
      run_open(client, calls);
    } else {
      const Measure measure(std::stod(words.at(3)), std::stod(words.at(4)));
      words[0] == "calls" ? run_calls(client, calls, measure) : run_streams(client, calls, measure);
    }
    std::cout.flush();
    // Nobody waits for an orderly end of thousands of calls.
    std::_Exit(0);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}

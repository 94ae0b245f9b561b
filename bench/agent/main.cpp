// What an agent adds to the calls of its tools: scripts/bench runs this program.
//
//   sluice_bench_agent agent URL RUNS CALLS INTERVAL_US SECONDS
//     RUNS at once, each with CALLS of a tool that streams
//   sluice_bench_agent client URL RUNS CALLS INTERVAL_US SECONDS
//     the same calls without an agent
//
// A server takes 1,024 calls on a connection, so each hundred runs have one. Each tool writes a
// chunk every INTERVAL_US, which says when it was made; 0: as fast as they are taken. It prints a
// line of JSON: how old the chunks were when the program had them.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <exception>
#include <functional>
#include <iostream>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <utility>
#include <vector>

#include "sluice/agent.hpp"

namespace {

namespace json = sluice::json;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kCount = 100'000'000;  // more chunks than are taken
constexpr std::size_t kRunsOfConnection = 100;

double cpu_us() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto us = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
  };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

/// What may be read next, in the order in which it was told.
class Ready {
 public:
  void push(std::size_t index) {
    {
      const std::lock_guard lock(mutex_);
      indices_.push_back(index);
    }
    changed_.notify_one();
  }
  std::size_t pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !indices_.empty(); });
    const std::size_t index = indices_.front();
    indices_.pop_front();
    return index;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::size_t> indices_;
};

/// The ages of chunks, between the end of the warm-up and the end.
class Ages {
 public:
  explicit Ages(double seconds)
      : begin_(Clock::now() + std::chrono::seconds(3)),
        end_(begin_ +
             std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))) {}

  /// Takes the chunks of a text: lines of JSON. Returns false if the time is over.
  bool add(std::string_view text) {
    const auto now = Clock::now();
    if (now < begin_) return true;
    if (!is_measuring_) cpu_ = cpu_us();
    is_measuring_ = true;
    constexpr std::string_view kStamp = "\"t_ns\":";
    for (auto at = text.find(kStamp); at != std::string_view::npos; at = text.find(kStamp, at)) {
      at += kStamp.size();
      const auto made = std::strtoll(text.data() + at, nullptr, 10);
      ages_.push_back(static_cast<double>(now.time_since_epoch().count() - made) / 1000);
    }
    return now < end_;
  }
  void print() {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
    const double cpu = cpu_us() - cpu_;
    std::ranges::sort(ages_);
    const auto part = [this](double of) {
      const auto index = static_cast<std::size_t>(of * static_cast<double>(ages_.size()));
      return ages_.empty() ? 0.0 : ages_[std::min(index, ages_.size() - 1)];
    };
    std::cout << json::object{{"units", ages_.size()},
                              {"per_second", static_cast<double>(ages_.size()) / seconds},
                              {"p50_us", part(0.5)},
                              {"p99_us", part(0.99)},
                              {"cpu_us_each", cpu / static_cast<double>(ages_.size())},
                              {"cores", cpu / 1e6 / seconds}}
              << "\n";
  }

 private:
  Clock::time_point begin_;
  Clock::time_point end_;
  bool is_measuring_ = false;
  double cpu_ = 0;
  std::vector<double> ages_;
};

struct Load {
  std::string url;
  std::size_t runs = 0;
  std::size_t calls = 0;  // of each run
  std::int64_t interval_us = 0;
  double seconds = 0;

  [[nodiscard]] json::object arguments() const {
    return {{"count", kCount}, {"interval_us", interval_us}};
  }
};

sluice::Client connect(const std::string& url) {
  return sluice::connect(url, {.max_requests = 100'000});
}

void run_agents(const Load& load) {
  const sluice::Model model = sluice::custom_model(
      "bench", [load](const sluice::ModelRequest&, sluice::ModelAnswer& answer) {
        for (std::size_t i = 0; i < load.calls; ++i) {
          answer.call("stream_numbers", load.arguments());
        }
      });
  Ready ready;
  std::vector<sluice::Run> runs;
  runs.reserve(load.runs);
  std::optional<sluice::Agent> agent;
  for (std::size_t i = 0; i < load.runs; ++i) {
    if (i % kRunsOfConnection == 0) {
      agent.emplace(
          model, sluice::AgentOptions{.servers = {{.label = "bench", .client = connect(load.url)}},
                                      .max_running = load.calls,
                                      .max_running_of_server = load.calls,
                                      .allows_duplicates = true});
    }
    runs.push_back(agent->run("Go"));
    ready.push(i);
  }
  Ages ages(load.seconds);
  for (bool goes_on = true; goes_on;) {
    const std::size_t index = ready.pop();
    while (goes_on) {
      const auto event = runs[index].poll();
      if (!event) break;
      if (event->type == sluice::AgentEventType::run_done) throw std::runtime_error("it is over");
      if (event->type == sluice::AgentEventType::tool_output_delta) goes_on = ages.add(event->text);
    }
    runs[index].on_next([&ready, index] { ready.push(index); });
  }
  ages.print();
  // What is told from now on has nobody to hear it.
  std::cout.flush();
  std::_Exit(0);
}

void run_calls(const Load& load) {
  const std::size_t count = load.runs * load.calls;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::string> texts;
  std::vector<sluice::PendingCall<sluice::ToolReply>> calls;
  calls.reserve(count);
  std::function<void(std::size_t)> read = [&](std::size_t index) {
    calls[index].on_next([&, index](std::optional<sluice::CallEvent> event) {
      if (!event) return;
      {
        const std::lock_guard lock(mutex);
        texts.push_back(std::move(event->message));
      }
      changed.notify_one();
      read(index);
    });
  };
  std::optional<sluice::Client> client;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % (kRunsOfConnection * load.calls) == 0) client.emplace(connect(load.url));
    calls.push_back(client->call("stream_numbers", load.arguments(), {.idle_timeout = {}}));
    read(i);
  }
  Ages ages(load.seconds);
  for (bool goes_on = true; goes_on;) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !texts.empty(); });
    const std::string text = std::move(texts.front());
    texts.pop_front();
    lock.unlock();
    goes_on = ages.add(text);
  }
  ages.print();
  std::cout.flush();
  std::_Exit(0);
}

}  // namespace

int main(int count, char** words) {
  if (count != 7) {
    std::cerr << "usage: sluice_bench_agent agent|client URL RUNS CALLS INTERVAL_US SECONDS\n";
    return 2;
  }
  try {
    const Load load{.url = words[2],
                    .runs = std::stoul(words[3]),
                    .calls = std::stoul(words[4]),
                    .interval_us = std::stoll(words[5]),
                    .seconds = std::stod(words[6])};
    if (std::string_view(words[1]) == "agent") {
      run_agents(load);
    } else {
      run_calls(load);
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}

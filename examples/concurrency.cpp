// Asks several slow services concurrently, each with a timeout. An answer that comes too late is
// left out.

#include "sluice/concurrency.hpp"

#include <string>
#include <utility>

#include "sluice/server.hpp"

using namespace std::chrono_literals;

struct City {
  std::string name;
};
struct Outlook {
  std::string weather;
  std::string traffic;
};

// These stand for remote services.

sluice::Task<std::string> ask_weather(std::string city, sluice::Call& call) {
  co_await call.sleep(20ms);
  co_return "sunny in " + city;
}
sluice::Task<std::string> ask_traffic(std::string city, sluice::Call& call) {
  co_await call.sleep(1h);
  co_return "none in " + city;
}

sluice::Task<std::string> or_unknown(sluice::Task<std::string> question) {
  try {
    co_return co_await sluice::with_timeout(100ms, std::move(question));
  } catch (const sluice::Error& error) {
    if (error.code != sluice::kTimedOut) throw;
    co_return "unknown";
  }
}

sluice::Task<Outlook> look_out(City in, sluice::Call& call) {
  auto [weather, traffic] = co_await sluice::when_all(or_unknown(ask_weather(in.name, call)),
                                                      or_unknown(ask_traffic(in.name, call)));
  co_return Outlook{std::move(weather), std::move(traffic)};
}

int main(int count, char** arguments) {
  sluice::Server server("city", "1.0");
  server.tool("look_out", "Says what a city is like now", &look_out);
  return sluice::serve(server, sluice::command_line{count, arguments});
}

#include "relay/relay_server.hpp"

#include <array>
#include <chrono>
#include <string>
#include <string_view>

using namespace std::chrono_literals;

namespace {

struct StreamNumbers {
  int count;
};
struct Add {
  int a;
  int b;
};
struct Sum {
  int sum;
};
struct Nothing {};
struct City {
  std::string city;
};

struct Weather {
  std::string_view city;
  std::string_view sky;
  int celsius;
};
constexpr std::array<Weather, 8> kWeather = {{{"Berlin", "cloudy", 11},
                                              {"Cairo", "sunny", 31},
                                              {"Lima", "foggy", 17},
                                              {"London", "rainy", 12},
                                              {"New York", "windy", 15},
                                              {"Oslo", "snowy", -3},
                                              {"Sydney", "sunny", 24},
                                              {"Tokyo", "clear", 19}}};

sluice::Stream<std::string> stream_numbers(StreamNumbers in, sluice::Call& call) {
  if (in.count < 1 || in.count > 1000) throw sluice::ToolError("count must be from 1 to 1000");
  std::string all;
  for (int i = 1; i <= in.count; ++i) {
    co_await call.sleep(100ms);
    const std::string number = std::to_string(2 * i) + (i == in.count ? "." : " ");
    all += number;
    co_yield sluice::text(number);
  }
  co_return all;
}

std::string weather(const City& in) {
  for (const Weather& each : kWeather) {
    if (each.city != in.city) continue;
    return std::string(each.city) + ": " + std::string(each.sky) + ", " +
           std::to_string(each.celsius) + " degrees Celsius";
  }
  std::string known;
  for (const Weather& each : kWeather) {
    known += (known.empty() ? "" : ", ") + std::string(each.city);
  }
  throw sluice::ToolError("The table has these cities: " + known);
}

}  // namespace

sluice::Server make_relay_server() {
  sluice::Server server("relay", "1.0");
  const sluice::ToolOptions reads{.annotations = {.read_only = true}};
  server.tool("stream_numbers", "Streams numbers one after the other", &stream_numbers, reads);
  server.tool("add", "Adds two numbers", [](Add in) { return Sum{in.a + in.b}; }, reads);
  server.tool(
      "get_secret_word", "Returns the secret word", [](Nothing) { return std::string("sluice"); },
      reads);
  server.tool("get_current_weather", "Returns the weather in a city", &weather, reads);
  return server;
}

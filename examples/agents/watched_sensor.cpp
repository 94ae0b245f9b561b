// A sensor that the model watches for a threshold. It is shown each measurement, has nothing to say
// of most, and says the alarm while the sensor still measures.
//
//   example-watched-sensor
//   example-watched-sensor --model http://127.0.0.1:8080/v1

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <string_view>

#include "demo.hpp"
#include "sluice/agent.hpp"
#include "sluice/server.hpp"

using namespace std::chrono_literals;

constexpr std::string_view kPrompt =
    "Measure the temperature of the server room. Warn me once, as soon as it is above 30 degrees. "
    "Say nothing of other measurements. At the end, tell me the highest.";
constexpr double kThreshold = 30;

constexpr std::array<std::string_view, 16> kTemperatures = {
    "21.5", "21.6", "21.4", "22.9", "25.0", "27.8", "29.9", "31.2",
    "33.0", "34.1", "34.6", "34.0", "32.7", "30.9", "29.2", "27.5",
};
constexpr std::string_view kUnit = " degrees";

sluice::Stream<std::string> measure(sluice::Call& call) {
  std::string all;
  for (const std::string_view temperature : kTemperatures) {
    co_await call.sleep(250ms);
    const std::string line = std::string(temperature) + std::string(kUnit) + "\n";
    all += line;
    co_yield sluice::text(line);
  }
  co_return "All measurements:\n" + all;
}

// The highest temperature in a text; 0: there is none.
double highest_in(std::string_view text) {
  double highest = 0;
  for (auto end = text.find(kUnit); end != std::string_view::npos;
       end = text.find(kUnit, end + 1)) {
    const auto begin = text.find_last_not_of("0123456789.", end - 1) + 1;
    highest = std::max(highest, std::stod(std::string(text.substr(begin, end - begin))));
  }
  return highest;
}

// Plays the model: what it is shown decides what it says.
void script(const sluice::ModelRequest& request, sluice::ModelAnswer& answer) {
  const std::string& shown = request.messages.back().content;
  const double highest = highest_in(shown);
  const std::string degrees = std::to_string(highest).substr(0, 4) + " degrees";
  const bool has_warned = std::ranges::any_of(request.messages, [](const auto& message) {
    return message.role == "assistant" && message.content.contains("Alarm");
  });
  if (shown == kPrompt) {
    answer.call("measure", {});
  } else if (shown.contains("All measurements")) {
    answer.text("The highest temperature was " + degrees + ".");
  } else if (highest > kThreshold && !has_warned) {
    answer.text("Alarm: the server room has " + degrees + "!");
  } else {
    answer.text("[[pass]]");
  }
}

int main(int count, char** arguments) {
  return demo::with_model(count, arguments, &script, [](const sluice::Model& model) {
    sluice::Server own("own", "1.0");
    own.tool("measure", "Measures the temperature of the server room for some seconds", &measure,
             {.annotations = {.read_only = true}});
    const sluice::Agent agent(model,
                              {.servers = {{.label = "own", .client = sluice::connect(own)}},
                               .policy = {.when = sluice::ReactionPolicy::When::every_chunk}});
    sluice::Run run = agent.run(std::string(kPrompt));
    return demo::show(run);
  });
}

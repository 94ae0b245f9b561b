// A build that the model stops at its first error. The build takes a minute and goes on after
// errors. The policy shows the model the lines that matter, and an error breaks off what it says.
//
//   example-stopped-build
//   example-stopped-build --model http://127.0.0.1:8080/v1

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <iostream>
#include <string>
#include <string_view>
#include <thread>

#include "demo.hpp"
#include "sluice/agent.hpp"
#include "sluice/server.hpp"

using namespace std::chrono_literals;

constexpr std::string_view kPrompt =
    "Build the program. Stop the build with tool_cancel at its first error, and tell me which "
    "error that is. Warnings do not matter.";

struct Step {
  std::string_view file;
  std::chrono::milliseconds time;
  std::string_view complaint;
};
constexpr std::array<Step, 6> kSteps = {{
    {"lexer.cpp", 300ms, ""},
    {"parser.cpp", 300ms, "parser.cpp:88: warning: unused variable 'depth'\n"},
    {"printer.cpp", 1500ms, "printer.cpp:41: error: 'Tree' has no member 'childs'\n"},
    {"tables.cpp", 20s, ""},
    {"main.cpp", 10s, "main.cpp:7: error: 'print' is not declared\n"},
    {"tests.cpp", 30s, ""},
}};

const std::string kTotal = std::to_string(kSteps.size());

// What has been built, by whichever calls. Whoever asks sees when no build is under way any more.
struct Progress {
  std::atomic<int> steps = 0;
  std::atomic<int> builds = 0;

  void wait() const {
    for (int under_way = builds; under_way != 0; under_way = builds) builds.wait(under_way);
  }
};

// A build that is under way, until its coroutine is gone.
class Building {
 public:
  explicit Building(Progress& progress) : progress_(&progress) { ++progress_->builds; }
  ~Building() {
    --progress_->builds;
    progress_->builds.notify_all();
  }
  Building(const Building&) = delete;
  Building& operator=(const Building&) = delete;

 private:
  Progress* progress_;
};

// Plays the model: what it is shown decides what it says.
void script(const sluice::ModelRequest& request, sluice::ModelAnswer& answer) {
  const std::string& shown = request.messages.back().content;
  if (shown == kPrompt) {
    answer.call("build", {}, "build_1");
  } else if (shown.contains("cancelled")) {
    answer.text("I stopped the build. Its first error is in printer.cpp: a Tree has no 'childs'.");
  } else if (shown.contains("error:")) {
    answer.call("tool_cancel", {{"call_id", "build_1"}});
  } else {
    // It would think on for minutes.
    answer.text("Only a warning, the build goes on. While it does, let me think about 'depth':");
    for (int i = 0; i < 10'000 && answer.reasoning("hm, "); ++i) std::this_thread::sleep_for(20ms);
  }
}

int main(int count, char** arguments) {
  return demo::with_model(count, arguments, &script, [](const sluice::Model& model) {
    Progress progress;
    sluice::Server own("own", "1.0");
    own.tool("build", "Builds the program. Goes on after errors",
             [&progress](sluice::Call& call) -> sluice::Stream<std::string> {
               const Building building(progress);
               for (std::size_t i = 0; i < kSteps.size(); ++i) {
                 ++progress.steps;
                 co_yield sluice::text("[" + std::to_string(i + 1) + "/" + kTotal + "] " +
                                       std::string(kSteps[i].file) + "\n");
                 co_await call.sleep(kSteps[i].time);
                 if (kSteps[i].complaint.empty()) continue;
                 co_yield sluice::text(std::string(kSteps[i].complaint));
               }
               co_return "The build has failed: 2 errors, 1 warning";
             });
    const sluice::Agent agent(model, {.servers = {{.label = "own", .client = sluice::connect(own)}},
                                      .policy = {.when = sluice::ReactionPolicy::When::match,
                                                 .pattern = "warning:|error:",
                                                 .interrupts = true}});
    sluice::Run run = agent.run(std::string(kPrompt));
    const int code = demo::show(run);
    progress.wait();  // after a minute, if nothing had stopped the build
    std::cout << progress.steps << " of " << kTotal << " files were begun" << std::endl;
    return code;
  });
}

// Tools whose calls become tasks, for clients that support tasks.

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "everything.hpp"

namespace everything {
namespace {

using namespace std::chrono_literals;
using sluice::Call;
using sluice::Task;
using sluice::TaskSupport;

struct PersonName {
  std::string name;
};
struct Work {
  double seconds = 1;
  std::optional<std::string> label;
};
struct File {
  std::optional<std::string> filename;
};
struct Consent {
  bool confirm;
};

}  // namespace

void add_tasks(sluice::Server& server) {
  server.tool("greet", "Greets", [](PersonName in) { return "Hello, " + in.name + "!"; });
  server.tool("slow_compute", "Takes as long as it is told",
              [](Work in, Call& call) -> Task<std::string> {
                const std::chrono::duration<double> time(in.seconds);
                co_await call.sleep(std::chrono::duration_cast<std::chrono::nanoseconds>(time));
                co_return "Computed " + in.label.value_or("something");
              },
              {.tasks = TaskSupport::optional});
  server.tool("failing_job", "Fails after a second",
              [](Call& call) -> Task<std::string> {
                co_await call.sleep(1s);
                throw sluice::ToolError("The job failed");
              },
              {.tasks = TaskSupport::required});
  server.tool("protocol_error_job", "Ends with an error of the protocol",
              [](Call& call) -> Task<std::string> {
                co_await call.sleep(300ms);
                throw sluice::Error{-32603, "The job broke"};
              },
              {.tasks = TaskSupport::optional});
  server.tool("confirm_delete", "Asks before it deletes",
              [](File in, Call& call) -> Task<std::string> {
                const auto answer = co_await call.elicit<Consent>(
                    "Delete " + in.filename.value_or("it") + "?", "confirm");
                co_return answer&& answer.content->confirm ? "Deleted" : "Kept";
              },
              {.tasks = TaskSupport::optional});
  server.tool("multi_input", "Asks two things at once",
              [](Call& call) -> Task<std::string> {
                std::vector<sluice::Question> questions;
                questions.push_back(Call::elicitation<PersonName>("Your first name?", "first"));
                questions.push_back(Call::elicitation<PersonName>("Your last name?", "last"));
                const std::vector<sluice::json::value> answers =
                    co_await call.ask(std::move(questions));
                co_return "Got " + std::to_string(answers.size()) + " answers";
              },
              {.tasks = TaskSupport::optional});
  server.tool("test_tool_with_task", "Asks for a name, then goes on as a task",
              [](Call& call) -> Task<std::string> {
                const auto answer =
                    co_await call.elicit<PersonName>("What is your name?", "user_name");
                call.begin_task();
                co_await call.sleep(300ms);
                co_return "Hello, " + (answer ? answer.content->name : "you") + "!";
              },
              {.tasks = TaskSupport::required, .asks_first = true});
}

}  // namespace everything

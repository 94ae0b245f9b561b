// Tools that ask the client: its user, its model, its roots. The same code serves clients that are
// asked while the call waits, and clients that call again with the answers.

#include <string>
#include <utility>
#include <vector>

#include <boost/json/serialize.hpp>

#include "everything.hpp"

namespace everything {
namespace {

using sluice::Call;
using sluice::Content;
using sluice::Question;
using sluice::Task;
namespace json = sluice::json;

struct Name {
  std::string name;
};
struct Color {
  std::string color;
};
struct Confirmation {
  bool ok;
};
struct Prompt {
  std::string prompt;
};
struct Message {
  std::string message;
};
struct Contact {
  std::string username;
  std::string email;

  static auto describe() {
    return sluice::describe(sluice::field<&Contact::username>("User's response"),
                            sluice::field<&Contact::email>("User's email address"));
  }
};
enum class Status { active, inactive, pending };
struct Defaults {
  std::string name = "John Doe";
  int age = 30;
  double score = 95.5;
  Status status = Status::active;
  bool verified = true;

  static auto describe() { return sluice::describe(sluice::field<&Defaults::status>().optional()); }
};

json::object choice(std::string_view value, std::string_view title) {
  return {{"const", value}, {"title", title}};
}

/// The five forms of choices (SEP-1330).
json::value choices() {
  const json::array plain{"option1", "option2", "option3"};
  const json::array titled{choice("value1", "First Option"), choice("value2", "Second Option"),
                           choice("value3", "Third Option")};
  return {
      {"type", "object"},
      {"properties",
       {{"untitledSingle", {{"type", "string"}, {"enum", plain}}},
        {"titledSingle", {{"type", "string"}, {"oneOf", titled}}},
        {"legacyEnum",
         {{"type", "string"},
          {"enum", {"opt1", "opt2", "opt3"}},
          {"enumNames", {"Option One", "Option Two", "Option Three"}}}},
        {"untitledMulti", {{"type", "array"}, {"items", {{"type", "string"}, {"enum", plain}}}}},
        {"titledMulti", {{"type", "array"}, {"items", {{"anyOf", titled}}}}}}}};
}

std::string_view name_of(sluice::ElicitAction action) {
  switch (action) {
    case sluice::ElicitAction::accept:
      return "accept";
    case sluice::ElicitAction::decline:
      return "decline";
    case sluice::ElicitAction::cancel:
      return "cancel";
  }
  return "cancel";
}

template <class T>
std::string told(const sluice::Elicited<T>& answer) {
  std::string out = "action=" + std::string(name_of(answer.action)) + ", content=";
  return out + (answer.content ? json::serialize(sluice::encode(*answer.content)) : "{}");
}
std::string told(const sluice::Elicited<json::object>& answer) {
  return "action=" + std::string(name_of(answer.action)) +
         ", content=" + json::serialize(answer.content.value_or(json::object()));
}

sluice::SamplingRequest asking(const std::string& text, int max_tokens) {
  return {.messages = {{.content = Content::text(text)}}, .max_tokens = max_tokens};
}

void add_session_questions(sluice::Server& server) {
  server.tool("test_sampling", "Asks the client's model",
              [](Prompt in, Call& call) -> Task<std::string> {
                const sluice::SamplingResult answer = co_await call.sample(asking(in.prompt, 100));
                co_return "LLM response: " + answer.text();
              });
  server.tool("test_missing_capability", "Asks the client's model, which few clients have",
              [](Call& call) -> Task<std::string> {
                const sluice::SamplingResult answer = co_await call.sample(asking("Hello", 10));
                co_return answer.text();
              });
  server.tool("test_elicitation", "Asks the user", [](Message in, Call& call) -> Task<std::string> {
    const auto answer = co_await call.elicit<Contact>(in.message);
    co_return "User response: " + told(answer);
  });
  server.tool("test_streaming_elicitation", "Asks the user after some output",
              [](Call& call) -> Task<std::string> {
                call.text("One question first\n");
                const auto answer = co_await call.elicit<Name>("What is your name?", "user_name");
                co_return "User response: " + told(answer);
              });
  server.tool("test_elicitation_sep1034_defaults", "Asks the user, with defaults",
              [](Call& call) -> Task<std::string> {
                const auto answer = co_await call.elicit<Defaults>("Check your data");
                co_return "Elicitation completed: " + told(answer);
              });
  server.tool("test_elicitation_sep1330_enums", "Lets the user choose",
              [](Call& call) -> Task<std::string> {
                const auto answer = co_await call.elicit("Choose", choices());
                co_return "Elicitation completed: " + told(answer);
              });
  server.tool("test_elicitation_url", "Sends the user to a page",
              [&server](Call& call) -> Task<std::string> {
                const sluice::ElicitAction action = co_await call.elicit_url(
                    "Sign in, please", "https://example.com/sign-in", "sign-in-1");
                // A real page would announce this when the user has finished.
                if (action == sluice::ElicitAction::accept)
                  server.elicitation_completed("sign-in-1");
                co_return "The user's answer: " + std::string(name_of(action));
              });
  server.tool("test_elicitation_url_required", "Needs the user to have been on a page",
              []() -> std::string {
                throw sluice::url_elicitation_required(
                    {{"Sign in, please", "https://example.com/sign-in", "sign-in-2"}});
              });
}

void add_input_questions(sluice::Server& server) {
  const auto greet = [](Call& call) -> Task<std::string> {
    const auto answer = co_await call.elicit<Name>("What is your name?", "user_name");
    if (!answer) co_return "You did not say.";
    co_return "Hello, " + answer.content->name + "!";
  };
  server.tool("test_input_required_result_elicitation", "Asks for a name", greet);
  server.tool("test_input_required_result_tampered_state", "Asks for a name", greet);
  server.tool("test_input_required_result_capabilities", "Asks what the client can be asked",
              [](Call& call) -> Task<std::string> {
                std::vector<Question> questions;
                if (call.client().elicitation) {
                  questions.push_back(Call::elicitation<Name>("What is your name?", "user_name"));
                }
                if (call.client().sampling) {
                  questions.push_back(call.sampling(asking("Generate a greeting", 50), "greeting"));
                }
                if (questions.empty()) co_return "This client cannot be asked.";
                const std::vector<json::value> answers = co_await call.ask(std::move(questions));
                co_return "Got " + std::to_string(answers.size()) + " answers";
              });
  server.tool("test_input_required_result_sampling", "Asks the client's model",
              [](Call& call) -> Task<std::string> {
                const auto answer = co_await call.sample(
                    asking("What is the capital of France?", 100), "capital_question");
                co_return answer.text();
              });
  server.tool("test_input_required_result_list_roots", "Asks for the roots",
              [](Call& call) -> Task<std::string> {
                const std::vector<sluice::Root> roots = co_await call.list_roots("client_roots");
                std::string out = "Roots:";
                for (const sluice::Root& root : roots) out += " " + root.uri;
                co_return out;
              });
  server.tool("test_input_required_result_request_state", "Asks for a confirmation",
              [](Call& call) -> Task<std::string> {
                const auto answer = co_await call.elicit<Confirmation>("Please confirm", "confirm");
                co_return answer&& answer.content->ok ? "Confirmed: state-ok"
                                                      : "Not confirmed: state-ok";
              });
  server.tool("test_input_required_result_multiple_inputs", "Asks for three things at once",
              [](Call& call) -> Task<std::string> {
                std::vector<Question> questions;
                questions.push_back(Call::elicitation<Name>("What is your name?", "user_name"));
                questions.push_back(call.sampling(asking("Generate a greeting", 50), "greeting"));
                questions.push_back({.method = "roots/list", .params = {}, .key = "client_roots"});
                const std::vector<json::value> answers = co_await call.ask(std::move(questions));
                co_return "Got " + std::to_string(answers.size()) + " answers";
              });
  server.tool("test_input_required_result_multi_round", "Asks twice",
              [](Call& call) -> Task<std::string> {
                const auto name = co_await call.elicit<Name>("Step 1: What is your name?", "step1");
                const auto color =
                    co_await call.elicit<Color>("Step 2: What is your favorite color?", "step2");
                if (!name || !color) co_return "You did not say.";
                co_return name.content->name + " likes " + color.content->color;
              });
}

}  // namespace

void add_questions(sluice::Server& server) {
  add_session_questions(server);
  add_input_questions(server);
}

}  // namespace everything

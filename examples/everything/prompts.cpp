#include <string>
#include <vector>

#include "everything.hpp"

namespace everything {
namespace {

using sluice::Call;
using sluice::Content;
using sluice::PromptMessage;
using sluice::Task;

struct TwoArguments {
  std::string arg1;
  std::string arg2;

  static auto describe() {
    return sluice::describe(sluice::field<&TwoArguments::arg1>("First test argument"),
                            sluice::field<&TwoArguments::arg2>("Second test argument"));
  }
};
struct Resource {
  std::string resourceUri;  // NOLINT(readability-identifier-naming)

  static auto describe() {
    return sluice::describe(sluice::field<&Resource::resourceUri>("URI of the resource to embed"));
  }
};
struct Context {
  std::string context;
};

}  // namespace

void add_prompts(sluice::Server& server) {
  server.prompt("test_simple_prompt", "Has no arguments",
                [] { return std::string("This is a simple prompt for testing."); });
  server.prompt("test_prompt_with_arguments", "Has two arguments", [](TwoArguments in) {
    return "Prompt with arguments: arg1='" + in.arg1 + "', arg2='" + in.arg2 + "'";
  });
  server.completion(sluice::PromptRef{"test_prompt_with_arguments"}, "arg1",
                    [](const std::string& typed) {
                      return std::vector<std::string>{typed + "paris", typed + "park"};
                    });
  server.prompt("test_prompt_with_embedded_resource", "Embeds a resource", [](Resource in) {
    return std::vector<PromptMessage>{
        {.content = Content::resource({.uri = in.resourceUri,
                                       .mime_type = "text/plain",
                                       .data = "Embedded resource content for testing."})},
        {.content = Content::text("Please process the embedded resource above.")}};
  });
  server.prompt("test_prompt_with_image", "Shows an image", [] {
    return std::vector<PromptMessage>{
        {.content = Content::image(png(), "image/png")},
        {.content = Content::text("Please analyze the image above.")}};
  });
  server.prompt("test_input_required_result_prompt", "Asks the user first",
                [](Call& call) -> Task<std::string> {
                  const auto answer = co_await call.elicit<Context>(
                      "What context should the prompt use?", "user_context");
                  co_return "Context: " + (answer ? answer.content->context : "none");
                });
}

}  // namespace everything

// A search that the model refines from its first hits. After every third hit the model is shown
// what was found so far. It need not wait for the end of a search that finds the wrong things.
//
//   example-refined-search
//   example-refined-search --model http://127.0.0.1:8080/v1

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <sstream>
#include <string>
#include <string_view>

#include "demo.hpp"
#include "sluice/agent.hpp"
#include "sluice/server.hpp"

using namespace std::chrono_literals;

constexpr std::string_view kPrompt =
    "What does the jaguar hunt? Search the archive. If the first hits of a search are about "
    "something else, cancel it with tool_cancel and search with better words.";

constexpr std::array<std::string_view, 24> kArchive = {
    "jaguar: sixty years of a sports car",
    "le mans, lap by lap: the jaguar that won",
    "bread from the village oven",
    "what a used jaguar costs, and what it eats",
    "sailing the baltic in a week",
    "a bridge that sings in the wind",
    "the last lighthouse keeper",
    "chess by post",
    "why the nights are dark",
    "tea, and who brought it",
    "a map of all wells",
    "snow in the desert",
    "the clockmaker of ulm",
    "night trains are back",
    "jaguar builds its last engine",
    "the jaguar, a cat that swims: it hunts caimans",
    "a day at the glass furnace",
    "islands that are not there",
    "how the jaguar hunts capybaras in the wetlands",
    "salt, and the roads it made",
    "a jaguar for the family",
    "the first telephone book",
    "owls in the belfry",
    "what the tide leaves behind",
};

struct Search {
  std::string words;
};

bool has_all(std::string_view title, const std::string& words) {
  std::istringstream each(words);
  for (std::string word; each >> word;) {
    std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
    if (!title.contains(word)) return false;
  }
  return true;
}

sluice::Stream<std::string> search(Search in, sluice::Call& call) {
  std::string found;
  for (const std::string_view title : kArchive) {
    co_await call.sleep(200ms);  // a large archive on slow disks
    if (!has_all(title, in.words)) continue;
    const std::string hit = std::string(title) + "\n";
    found += hit;
    co_yield sluice::text(hit);
  }
  co_return found.empty() ? "nothing was found" : found;
}

// Plays the model: what it is shown decides what it says.
void script(const sluice::ModelRequest& request, sluice::ModelAnswer& answer) {
  const auto result =
      std::ranges::find(request.messages, "search_2", &sluice::ChatMessage::tool_call_id);
  if (result != request.messages.end()) {
    answer.text("The jaguar hunts caimans and capybaras, says the archive:\n" + result->content);
  } else if (request.messages.back().content == kPrompt) {
    answer.call("search", {{"words", "jaguar"}}, "search_1");
  } else if (request.messages.back().content.contains("sports car")) {
    answer.text("These are cars, and I look for the cat.");
    answer.call("tool_cancel", {{"call_id", "search_1"}});
    answer.call("search", {{"words", "jaguar hunts"}}, "search_2");
  } else {
    answer.text("I have found nothing.");
  }
}

int main(int count, char** arguments) {
  return demo::with_model(count, arguments, &script, [](const sluice::Model& model) {
    sluice::Server own("own", "1.0");
    own.tool("search", "Finds the titles that have all of these words, given with spaces", &search,
             {.annotations = {.read_only = true}});
    const sluice::Agent agent(
        model, {.servers = {{.label = "own", .client = sluice::connect(own)}},
                .policy = {.when = sluice::ReactionPolicy::When::every_n, .every = 3}});
    sluice::Run run = agent.run(std::string(kPrompt));
    return demo::show(run);
  });
}

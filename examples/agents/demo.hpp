#pragma once

// What the demos of this folder have in common: which model is asked, and how a run is shown.

#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "sluice/agent.hpp"

namespace demo {

/// The model at a URL, which has its name behind `#` if there are several. As `sluice agent` does,
/// it takes the key from the environment. A key is sent over https alone.
inline sluice::Model model_at(const std::string& url) {
  const auto hash = url.find('#');
  sluice::RemoteModelOptions options{.url = url.substr(0, hash)};
  if (hash != std::string::npos) options.model = url.substr(hash + 1);
  const char* const key = std::getenv("SLUICE_MODEL_KEY");
  if (key != nullptr && url.starts_with("https://")) options.key = key;
  return sluice::remote_model(options);
}

/// Does `work` with the model of the command line, which is `script` if it names none. Returns the
/// program's exit code.
inline int with_model(int count, char** arguments, sluice::ModelFunction script,
                      const std::function<int(const sluice::Model&)>& work) {
  const bool is_scripted = count == 1;
  if (!is_scripted && (count != 3 || std::string_view(arguments[1]) != "--model")) {
    std::cerr << "usage: " << arguments[0] << " [--model URL[#NAME]]\n"
              << "SLUICE_MODEL_KEY is the model's key, which is sent over https alone.\n";
    return 2;
  }
  try {
    if (!is_scripted) return work(model_at(arguments[2]));
    std::cout << "The model is a script in this program; --model URL asks a real one.\n";
    return work(sluice::custom_model("script", std::move(script)));
  } catch (const std::exception& error) {
    std::cerr << arguments[0] << ": " << error.what() << "\n";
    return 1;
  }
}

/// Prints two lanes: what the model says as it is, and what tools do behind a bar.
class Lanes {
 public:
  void model(std::string_view text) {
    std::cout << text << std::flush;
    is_in_line_ = !text.ends_with('\n');
  }
  void tool(const std::string& text) {
    end_line();
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) std::cout << "  | " << line << std::endl;
  }
  void end_line() {
    if (std::exchange(is_in_line_, false)) std::cout << std::endl;
  }

 private:
  bool is_in_line_ = false;
};

/// Shows a run until its end. Returns the program's exit code.
inline int show(sluice::Run& run) {
  using Type = sluice::AgentEventType;
  const auto text_at = [](const sluice::AgentEvent& event, const char* name) {
    return std::string(std::string_view(event.data.at(name).as_string()));
  };
  Lanes lanes;
  while (const auto event = run.next()) {
    if (event->type == Type::output_text_delta) lanes.model(event->text);
    if (event->type == Type::output_text_done) lanes.end_line();
    if (event->type == Type::response_incomplete) lanes.model("[broken off]\n");
    if (event->type == Type::tool_output_started) {
      std::ostringstream arguments;
      arguments << event->data.at("arguments");
      lanes.tool(text_at(*event, "tool") + " " + arguments.str());
    }
    if (event->type == Type::tool_output_delta) lanes.tool(event->text);
    if (event->type == Type::tool_output_done) lanes.tool(text_at(*event, "status"));
  }
  const sluice::RunResult result = run.result();
  std::cout << result.status << (result.reason.empty() ? "" : ": ") << result.reason << std::endl;
  return result.is_completed() ? 0 : 1;
}

}  // namespace demo

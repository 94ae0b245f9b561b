#pragma once

// Every feature of a server, with the names that the official conformance suite uses.

#include <string_view>

#include "sluice/server.hpp"

namespace everything {

void add_tools(sluice::Server& server);
void add_questions(sluice::Server& server);
void add_tasks(sluice::Server& server);
void add_resources(sluice::Server& server);
void add_prompts(sluice::Server& server);

/// A red square of one pixel, as a PNG file.
std::string_view png();
/// A moment of silence, as a WAV file.
std::string_view wav();

}  // namespace everything

#pragma once

#include <string>

#include "cli/content/content_text.hpp"
#include "core/error.hpp"

namespace sluice {

class Subcommand;

/// What a user says of images, audio and binary resources.
struct ContentOptions {
  std::string folder;
  std::string images = "auto";
};

/// Adds --save and --images. `options` must outlive the parsing.
void add_content_options(Subcommand& command, ContentOptions& options);

/// What they mean. Error: kExitUsage.
Result<ContentPlace> content_place(const ContentOptions& options);

}  // namespace sluice

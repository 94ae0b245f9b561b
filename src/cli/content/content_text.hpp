#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cli/content/terminal_images.hpp"
#include "json/json.hpp"

namespace sluice {

/// What a server's content is on the terminal.
struct ShownContent {
  struct Image {
    std::size_t position;  // in the text
    std::string sequence;  // for the terminal
  };

  std::string text = {};                // for standard output, with a line break at its end
  std::vector<Image> images = {};       // in the text, in their order
  std::vector<std::string> notes = {};  // for standard error: which files were saved, and which not
  bool has_failed = false;  // a file could not be saved, or the server has made a mistake

  /// Replaces the text. `changed` is empty, or ends as the text does. Images keep their place from
  /// the end; those before `changed` come first.
  void replace_text(std::string changed);
  /// The text with its images.
  [[nodiscard]] std::string output() const;
};

/// Where images, audio and binary resources go.
struct ContentPlace {
  std::string folder = {};                     // of files; empty: the working directory
  ImageProtocol images = ImageProtocol::none;  // of the terminal that gets the text
  bool passes_text = false;                    // as it is: no terminal gets it
};

/// What there is to show when the server has not answered with an array as it must; `what` says so.
ShownContent server_mistake(std::string_view what);

/// Content blocks of a tool or a prompt (2025-11-25, Tools, Tool Result). Images, audio and binary
/// resources become files, and the terminal shows images where it can. Blocks of kinds that are not
/// known are shown as JSON.
ShownContent shown_content(const json::array& blocks, const ContentPlace& place);

/// The `contents` of a resource that was read, in the same way.
ShownContent shown_resource(const json::array& contents, const ContentPlace& place);

/// Prints it, notes first. Returns the program's exit code.
int print(const ShownContent& content);

}  // namespace sluice

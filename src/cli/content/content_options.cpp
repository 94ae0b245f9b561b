#include "cli/content/content_options.hpp"

#include <unistd.h>
#include <utility>

#include "cli/content/terminal_images.hpp"
#include "cli/options/command_line.hpp"
#include "cli/terminal/terminal.hpp"

namespace sluice {

void add_content_options(Subcommand& command, ContentOptions& options) {
  command.add_option("--save", &options.folder,
                     {.text = "The folder for images, audio and binary resources. Default: here",
                      .operand = "PATH"});
  command.add_option("--images", &options.images,
                     {.text = "How the terminal shows images; auto finds out",
                      .operand = "auto|kitty|iterm2|never",
                      .shows_default = true});
}

Result<ContentPlace> content_place(const ContentOptions& options) {
  const auto images = chosen_images(options.images);
  if (!images) return std::unexpected(images.error());
  return ContentPlace{
      .folder = options.folder, .images = *images, .passes_text = !is_terminal(STDOUT_FILENO)};
}

}  // namespace sluice

#include "cli/content/terminal_images.hpp"

#include <algorithm>
#include <array>
#include <unistd.h>

#include "cli/content/image_size.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/options/process_environment.hpp"
#include "cli/terminal/terminal.hpp"
#include "core/text/base64.hpp"
#include "core/text/text.hpp"

namespace sluice {
namespace {

/// Of Base64 in one escape sequence (kitty, "Remote client"): a multiple of four.
constexpr std::size_t kPieceOfImage = 4096;

/// Whether its sides are not too long: its pixels are in memory in the terminal.
bool is_small(std::string_view bytes) {
  const auto size = image_size(bytes);
  return size && size->width <= kMaxImageSide && size->height <= kMaxImageSide;
}

std::string base64_of(std::string_view bytes) {
  std::string out;
  append_base64(out, bytes);
  return out;
}

std::string kitty_sequence(std::string_view bytes) {
  const std::string text = base64_of(bytes);
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += kPieceOfImage) {
    // Shows a PNG at the cursor, and answers nothing, which would be read as typed.
    out.append(at == 0 ? "\x1b_Ga=T,f=100,q=2,m=" : "\x1b_Gm=");
    out.append(at + kPieceOfImage < text.size() ? "1;" : "0;");
    out.append(text, at, kPieceOfImage).append("\x1b\\");
  }
  return out.append("\n");
}

std::string iterm2_sequence(std::string_view bytes) {
  return "\x1b]1337;File=inline=1;size=" + std::to_string(bytes.size()) + ":" + base64_of(bytes) +
         "\a\n";
}

}  // namespace

ImageProtocol image_protocol(const LookUpVariable& environment) {
  const auto value = [&](const char* name) { return environment(name).value_or(""); };
  const std::string term = value("TERM");
  const bool is_multiplexed = !value("TMUX").empty() || !value("STY").empty() ||
                              term.starts_with("tmux") || term.starts_with("screen");
  if (is_multiplexed || term == "dumb") return ImageProtocol::none;
  const std::string program = value("TERM_PROGRAM");
  if (!value("KITTY_WINDOW_ID").empty() || term == "xterm-kitty" || program == "ghostty" ||
      term == "xterm-ghostty" || !value("GHOSTTY_RESOURCES_DIR").empty()) {
    return ImageProtocol::kitty;
  }
  constexpr std::array<std::string_view, 3> kLikeIterm = {{"iTerm.app", "WezTerm", "mintty"}};
  const bool is_like_iterm = std::ranges::count(kLikeIterm, program) > 0;
  // Of a session over ssh.
  if (is_like_iterm || value("LC_TERMINAL") == "iTerm2") return ImageProtocol::iterm2;
  return ImageProtocol::none;
}

Result<ImageProtocol> chosen_images(std::string_view choice) {
  const bool has_terminal = is_terminal(STDOUT_FILENO);
  if (choice == "auto") return has_terminal ? image_protocol(environment) : ImageProtocol::none;
  if (choice == "never") return ImageProtocol::none;
  if (choice != "kitty" && choice != "iterm2") {
    return fail(kExitUsage, "--images: give auto, kitty, iterm2 or never");
  }
  if (!has_terminal) return ImageProtocol::none;
  return choice == "kitty" ? ImageProtocol::kitty : ImageProtocol::iterm2;
}

std::string image_sequence(ImageProtocol protocol, std::string_view mime_type,
                           std::string_view bytes) {
  const bool is_image = to_lower(mime_type).starts_with("image/");
  const bool is_png = bytes.starts_with("\x89PNG");
  if (!is_image || bytes.size() > kMaxShownImage || !is_small(bytes)) return {};
  if (protocol == ImageProtocol::iterm2) return iterm2_sequence(bytes);
  return protocol == ImageProtocol::kitty && is_png ? kitty_sequence(bytes) : std::string();
}

}  // namespace sluice

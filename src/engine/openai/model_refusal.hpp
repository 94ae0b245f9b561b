#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace sluice {

/// How the message begins of an error of a run whose model's server refuses the request; its HTTP
/// status follows. The result of a tool carries the text of an error and no code.
inline constexpr std::string_view kModelRefusal =
    "The model's server refuses the request with HTTP ";

/// The status in such a message; nothing for any other.
inline std::optional<int> model_refusal_in(std::string_view message) {
  if (!message.starts_with(kModelRefusal)) return std::nullopt;
  message.remove_prefix(kModelRefusal.size());
  int status = 0;
  const auto parsed = std::from_chars(message.data(), message.data() + message.size(), status);
  if (parsed.ec != std::errc()) return std::nullopt;
  return status;
}

}  // namespace sluice

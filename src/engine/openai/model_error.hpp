#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "json/json.hpp"

namespace sluice {

/// The beginning of a text that a model or its server says, to quote it in an error: at most 500
/// bytes, with spaces in place of line breaks and other control characters.
std::string on_one_line(std::string_view text);

/// The message of an error in a reply or an event: {"error": {"message": ...}} or {"error": "..."}.
/// As on_one_line() has it. Nothing if `body` has no error.
std::optional<std::string> model_error_of(const json::object& body);

/// The same of the text of a reply. Gemini's API has the object in an array.
std::optional<std::string> model_error_in(std::string_view body);

/// The error of a run whose model's server says that it failed. `message` is quoted as it is.
std::unexpected<Error> remote_failed(std::string_view message);

/// The error of a run whose model's server sends what is not its API.
std::unexpected<Error> remote_unreadable(std::string_view what);

}  // namespace sluice

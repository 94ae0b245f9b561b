#pragma once

#include <span>
#include <string>

#include "cli/options/outline.hpp"

namespace sluice {

/// The hidden command that shells ask what may stand in the place of the last of `words`: prints
/// offer_lines(). Returns kExitOk whatever happens, and says nothing about what fails.
///
/// A server is asked within kOfferPatience, if the user has named it. One that was started for that
/// is ended afterwards, in the background and within some seconds. Nobody is asked to log in. A
/// command behind "--" is not started, as it may be typed by half; and what a project's file names
/// is neither started nor told what is in the environment, as the file may be that of a repository
/// that was cloned.
int print_offers(const CommandOutline& program, std::span<const std::string> words);
inline constexpr unsigned kOfferPatience = 1;  // seconds

/// How a shell calls it: `sluice __complete WORD...`.
inline constexpr const char* kOfferCommand = "__complete";

}  // namespace sluice

#pragma once

#include <chrono>

#include "client/session/server_link.hpp"
#include "core/clock.hpp"

namespace sluice {

/// Takes no notice of anything: who a link tells once it is being closed. Has no state.
ServerLink::Owner& nobody();

/// How long a link that is closed goes on sending what needs no answer.
inline constexpr Duration kLastWords = std::chrono::seconds(2);

}  // namespace sluice

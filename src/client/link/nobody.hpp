#pragma once

#include "client/session/contract/server_link.hpp"

namespace sluice {

/// An owner that ignores everything: a link that is being closed has it in place of its session.
/// Has no state.
ServerLink::Owner& nobody();

}  // namespace sluice

#pragma once

#include <functional>

#include "core/clock.hpp"
#include "core/error.hpp"

namespace sluice {

class ClientSession;

/// Lists all tools again, so that the session learns which of their parameters are mirrored. At
/// most 100 pages are read, each with `patience` as its idle timeout. `done` is called once, unless
/// the session is gone; not from within this function.
void refresh_tools(ClientSession& session, Duration patience,
                   std::function<void(Result<void>)> done);

}  // namespace sluice

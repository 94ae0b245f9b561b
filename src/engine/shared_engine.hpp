#pragma once

#include <functional>
#include <memory>

#include "engine/engine.hpp"

namespace sluice {

/// A handle of `engine`, which ends with its last copy. Its end may wait for whoever waits for the
/// loop of all clients. So on the thread of that loop nobody waits: another thread ends the engine.
/// `ended`, unless it is null, is called when the engine is gone, on the thread that has ended it.
std::shared_ptr<Engine> share_engine(std::unique_ptr<Engine> engine,
                                     std::function<void()> ended = {});

}  // namespace sluice

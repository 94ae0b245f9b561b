#pragma once

#include <memory>
#include <string>

#include "engine/engine.hpp"
#include "sluice/model.hpp"

namespace sluice {

/// An engine whose answers a function gives, each on a thread of its own.
std::unique_ptr<Engine> make_function_engine(std::string name, ModelFunction answer);

}  // namespace sluice

#pragma once

#include <functional>

#include "core/error.hpp"
#include "json/json.hpp"

namespace sluice {

/// Keeps the state of one run. Belongs to the run's loop.
class StateKeeper {
 public:
  virtual ~StateKeeper() = default;
  /// `done` is called once, in a later turn of the loop. Call again only after that.
  virtual void keep(json::object state, std::function<void(const Result<void>&)> done) = 0;
};

}  // namespace sluice

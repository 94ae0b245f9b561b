#include "server/sessions/change.hpp"

namespace sluice {

Change MissedChanges::take() {
  auto next = changes_.upper_bound(last_);
  if (next == changes_.end()) next = changes_.begin();
  last_ = std::move(changes_.extract(next).value());
  return {.kind = last_.first, .subject = last_.second};
}

}  // namespace sluice

#pragma once

#include <string_view>

namespace sluice {

/// Whose turn it is: of `clients`, a map by their names, the first after `last`, around in a
/// circle, for which `is_ready` says true; or end().
template <class Clients, class IsReady>
auto next_turn(Clients& clients, std::string_view last, IsReady is_ready) {
  const auto begin = clients.upper_bound(last);
  for (auto each = begin; each != clients.end(); ++each) {
    if (is_ready(each->second)) return each;
  }
  for (auto each = clients.begin(); each != begin; ++each) {
    if (is_ready(each->second)) return each;
  }
  return clients.end();
}

}  // namespace sluice

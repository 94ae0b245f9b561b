#pragma once

namespace sluice {

/// Round robin: the next client in `clients`, a map by client, after `last` for which `is_ready`
/// returns true. Continues from the beginning after the end. Returns end() if no client is ready.
template <class Clients, class Client, class IsReady>
auto next_turn(Clients& clients, const Client& last, IsReady is_ready) {
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

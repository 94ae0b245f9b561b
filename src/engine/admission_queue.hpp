#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <queue>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace sluice {

/// The items that wait for a slot. Clients are served in turn, so that one client does not suffer
/// from how much another has waiting: a client that is new to the queue waits for at most one item
/// of each other client. Among the items of one client, higher priority goes first, then earlier
/// arrival. An item that had a slot and lost it returns to the place of its arrival.
template <class T>
class AdmissionQueue {
 public:
  struct Position {
    std::string client = {};
    int priority = 0;
    std::uint64_t arrival = 0;  // unique
  };

  void push(const Position& position, T item) {
    const auto [lane, added] = lanes_.try_emplace(position.client, Lane{.turn = now_, .items = {}});
    lane->second.items.emplace(order_of(position), std::move(item));
    ++size_;
  }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] const T& front() const {
    return std::ranges::min_element(lanes_, {}, head)->second.items.begin()->second;
  }
  T pop() {
    const auto lane = std::ranges::min_element(lanes_, {}, head);
    T item = std::move(lane->second.items.extract(lane->second.items.begin()).mapped());
    lane->second.turn = ++now_;
    --size_;
    if (lane->second.items.empty()) lanes_.erase(lane);
    return item;
  }

  /// Removes the items for which `predicate` holds and passes them to `taker`.
  template <class Predicate, class Taker>
  void take_if(Predicate predicate, Taker taker) {
    for (auto lane = lanes_.begin(); lane != lanes_.end();) {
      auto& items = lane->second.items;
      for (auto it = items.begin(); it != items.end();) {
        if (!predicate(it->second)) {
          ++it;
          continue;
        }
        T item = std::move(it->second);
        it = items.erase(it);
        --size_;
        taker(std::move(item));
      }
      lane = items.empty() ? lanes_.erase(lane) : std::next(lane);
    }
  }

  /// Calls `visitor(item, position)` in the order of admission.
  template <class Visitor>
  void visit(Visitor visitor) const {
    using Next = std::tuple<std::uint64_t, std::uint64_t, typename Items::const_iterator,
                            typename Items::const_iterator>;
    const auto later = [](const Next& a, const Next& b) {
      return std::tie(std::get<0>(a), std::get<1>(a)) > std::tie(std::get<0>(b), std::get<1>(b));
    };
    std::priority_queue<Next, std::vector<Next>, decltype(later)> next(later);
    const auto add = [&](std::uint64_t turn, auto from, auto to) {
      if (from != to) next.emplace(turn, from->first.second, from, to);
    };
    for (const auto& [client, lane] : lanes_) {
      add(lane.turn, lane.items.begin(), lane.items.end());
    }
    std::uint64_t now = now_;
    for (std::uint32_t position = 0; !next.empty(); ++position) {
      const auto [turn, arrival, item, end] = next.top();
      next.pop();
      visitor(item->second, position);
      add(++now, std::next(item), end);
    }
  }

 private:
  using Order = std::pair<int, std::uint64_t>;  // negated priority, arrival
  using Items = std::map<Order, T>;
  struct Lane {
    std::uint64_t turn = 0;  // when it was last served, or was added
    Items items;
  };

  static Order order_of(const Position& position) { return {-position.priority, position.arrival}; }
  /// The order in which lanes are served.
  static std::pair<std::uint64_t, std::uint64_t> head(
      const std::pair<const std::string, Lane>& lane) {
    return {lane.second.turn, lane.second.items.begin()->first.second};
  }

  std::map<std::string, Lane> lanes_;  // none is empty
  std::size_t size_ = 0;
  std::uint64_t now_ = 0;  // how many items have been served
};

}  // namespace sluice

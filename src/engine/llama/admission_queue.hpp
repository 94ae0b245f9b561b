#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace sluice {

/// What waits for a slot: by priority, higher first, then by arrival. Whoever had a slot and lost
/// it goes back to the place of its arrival.
template <class T>
class AdmissionQueue {
 public:
  /// Ordered from first to last to be admitted.
  struct Place {
    int priority = 0;
    std::uint64_t arrival = 0;
    bool operator<(const Place& other) const {
      return priority != other.priority ? priority > other.priority : arrival < other.arrival;
    }
  };

  void push(Place place, T item) { items_.emplace(place, std::move(item)); }
  [[nodiscard]] bool empty() const { return items_.empty(); }
  [[nodiscard]] std::size_t size() const { return items_.size(); }
  [[nodiscard]] const T& front() const { return items_.begin()->second; }
  T pop() { return std::move(items_.extract(items_.begin()).mapped()); }

  /// Takes out everything for which `predicate` holds and hands it to `taker`.
  template <class Predicate, class Taker>
  void take_if(Predicate predicate, Taker taker) {
    for (auto it = items_.begin(); it != items_.end();) {
      if (!predicate(it->second)) {
        ++it;
        continue;
      }
      T item = std::move(it->second);
      it = items_.erase(it);
      taker(std::move(item));
    }
  }

  /// Calls `visitor(item, position)` in the order of admission.
  template <class Visitor>
  void visit(Visitor visitor) const {
    std::uint32_t position = 0;
    for (const auto& [place, item] : items_) visitor(item, position++);
  }

 private:
  std::map<Place, T> items_;
};

}  // namespace sluice

#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <tuple>
#include <utility>

namespace sluice {

/// A holder's rank in a Ranking.
struct RankKey {
  std::size_t has = 0;
  std::uint64_t since = 0;  // number of the change that set `has`
};

/// The holders of a shared resource, ordered by how much each one has, to find the one that should
/// make room for others. A holder has a member `rank`, which this class manages. Not thread-safe.
template <class Holder>
class Ranking {
 public:
  /// Records that `holder` now has `has`. Among holders that have the same amount, it becomes the
  /// last. With 0 it is removed.
  void set(Holder& holder, std::size_t has) {
    auto node = order_.extract(key_of(holder));
    holder.rank = {.has = has, .since = ++changes_};
    if (has == 0) return;
    if (node.empty()) {
      order_.insert(key_of(holder));
    } else {
      node.value() = key_of(holder);
      order_.insert(std::move(node));
    }
  }
  /// The holder that has most. If several have the same amount, the one that has had it longest.
  /// Null if there are no holders.
  [[nodiscard]] Holder* most() const {
    if (order_.empty()) return nullptr;
    return std::get<2>(*order_.lower_bound({std::get<0>(*order_.rbegin()), 0, nullptr}));
  }

 private:
  using Key = std::tuple<std::size_t, std::uint64_t, Holder*>;
  static Key key_of(Holder& holder) { return {holder.rank.has, holder.rank.since, &holder}; }

  std::set<Key> order_;
  std::uint64_t changes_ = 0;
};

}  // namespace sluice

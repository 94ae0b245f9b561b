#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <tuple>
#include <utility>

namespace sluice {

/// A holder's place in a Ranking.
struct RankKey {
  std::size_t has = 0;
  std::uint64_t since = 0;  // which change gave it that
};

/// Holders of something that all of them share, by how much each has: who has most makes room for
/// others. A holder keeps its place as its member `rank`. Not thread-safe.
template <class Holder>
class Ranking {
 public:
  /// `holder` has so much now, and comes behind those that have as much already; 0: it leaves.
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
  /// Who has most, and of several that have as much, for longest. Null: nobody has any.
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

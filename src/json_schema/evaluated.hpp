#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice {

/// Which items or properties of one instance have been evaluated by a subschema. unevaluatedItems
/// and unevaluatedProperties do not apply to those. Allocates only for more than 128 members.
class EvaluatedMembers {
 public:
  explicit EvaluatedMembers(std::size_t size) {
    if (size > few_.size() * kBits) many_.resize((size + kBits - 1) / kBits);
  }

  void mark(std::size_t index) { words()[index / kBits] |= std::uint64_t{1} << (index % kBits); }
  void mark_all() { all_ = true; }
  bool contains(std::size_t index) const {
    return all_ || ((words()[index / kBits] >> (index % kBits)) & 1U) != 0;
  }

  /// `other` must belong to the same instance.
  void merge(const EvaluatedMembers& other) {
    all_ |= other.all_;
    if (many_.empty()) {
      for (std::size_t i = 0; i < few_.size(); ++i) few_[i] |= other.few_[i];
    }
    for (std::size_t i = 0; i < many_.size(); ++i) many_[i] |= other.many_[i];
  }

 private:
  static constexpr std::size_t kBits = 64;

  std::uint64_t* words() { return many_.empty() ? few_.data() : many_.data(); }
  const std::uint64_t* words() const { return many_.empty() ? few_.data() : many_.data(); }

  std::array<std::uint64_t, 2> few_{};
  std::vector<std::uint64_t> many_;
  bool all_ = false;
};

}  // namespace sluice

#pragma once

#include <cstdint>
#include <string_view>

#include "core/error.hpp"
#include "json/json.hpp"

namespace sluice {

/// How many members the objects of one request may have: those in its tools and in the arguments of
/// its calls together. llama.cpp hands them to the template one by one, and for each member of an
/// object it looks through those before it. So a member costs as much as the object has members,
/// besides kMemberCost. What is spent takes about 20 ns a unit.
class MemberBudget {
 public:
  static constexpr std::uint64_t kMemberCost = 1000;
  static constexpr std::uint64_t kLimit = 20'000'000;

  /// Spends what `value` costs. Error: -32602, which begins with `what`, the place of the value,
  /// in the plural.
  Result<void> spend(const json::value& value, std::string_view what);

 private:
  std::uint64_t left_ = kLimit;
};

}  // namespace sluice

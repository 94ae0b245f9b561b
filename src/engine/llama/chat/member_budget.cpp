#include "engine/llama/chat/member_budget.hpp"

#include <string>

#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

std::uint64_t cost_of(const json::value& value) {
  std::uint64_t cost = 0;
  if (const json::object* const object = value.if_object()) {
    cost = object->size() * (object->size() + MemberBudget::kMemberCost);
    for (const auto& [name, member] : *object) cost += cost_of(member);
  } else if (const json::array* const array = value.if_array()) {
    for (const json::value& element : *array) cost += cost_of(element);
  }
  return cost;
}

}  // namespace

Result<void> MemberBudget::spend(const json::value& value, std::string_view what) {
  const std::uint64_t cost = cost_of(value);
  if (cost > left_) {
    return fail(kInvalidParams,
                std::string(what) +
                    " have too many members in their objects: an object of n members counts n * (n "
                    "+ 1000), and all objects in tools and in the arguments of calls may count "
                    "20000000 together; use fewer members, or smaller objects");
  }
  left_ -= cost;
  return {};
}

}  // namespace sluice

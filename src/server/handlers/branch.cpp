#include "server/handlers/branch.hpp"

#include <utility>

namespace sluice::detail {
namespace {

thread_local Branch* branch_of_this_thread = nullptr;

}  // namespace

Branch* running_branch() noexcept {
  return branch_of_this_thread;
}

Branch* Branch::enter(Branch* branch) noexcept {
  return std::exchange(branch_of_this_thread, branch);
}

}  // namespace sluice::detail

#include "auth/operators.hpp"

#include <utility>

#include "auth/api_keys.hpp"

namespace sluice {

void Operators::replace(const std::vector<std::string>& names) {
  std::set<std::string> principals;
  for (const std::string& name : names) principals.insert(ApiKeys::principal_of(name));
  const std::lock_guard lock(mutex_);
  principals_ = std::move(principals);
}

bool Operators::has(const Principal& caller) const {
  const std::lock_guard lock(mutex_);
  return principals_.contains(caller.id);
}

}  // namespace sluice

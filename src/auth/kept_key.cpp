#include "auth/kept_key.hpp"

#include "auth/api_keys.hpp"

namespace sluice {

KeptKey::KeptKey(const AccessPolicy& policy, const HttpRequest& request)
    : policy_(&policy), checked_(policy.replacements()) {
  if (policy.keys() == nullptr) return;
  digest_ = ApiKeys::digest_of(ApiKeys::key_in(RequestHead(request, policy.proxies())));
}

bool KeptKey::is_valid(const std::string& principal) {
  if (digest_.empty() || checked_ == policy_->replacements()) return true;
  const ApiKeys* const keys = policy_->keys();
  const std::string* const name = keys == nullptr ? nullptr : keys->name_of_digest(digest_);
  if (name == nullptr || ApiKeys::principal_of(*name) != principal) return false;
  checked_ = policy_->replacements();
  return true;
}

}  // namespace sluice

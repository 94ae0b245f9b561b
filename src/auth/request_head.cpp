// Implements RequestHead of sluice/authenticator.hpp.

#include <algorithm>

#include "auth/trusted_proxies.hpp"
#include "net/http/http_types.hpp"
#include "sluice/authenticator.hpp"

namespace sluice {

std::string_view RequestHead::method() const {
  return request_->method_name;
}

std::string_view RequestHead::target() const {
  return request_->target;
}

std::optional<std::string_view> RequestHead::field(std::string_view name) const {
  const std::string_view value = request_->header(name);
  if (value.data() == nullptr || is_repeated(name)) return {};
  return value;
}

bool RequestHead::is_repeated(std::string_view name) const {
  return std::ranges::count_if(request_->headers, [name](const HeaderField& field) {
           return equals_ignoring_case(field.name, name);
         }) > 1;
}

std::string RequestHead::address() const {
  return proxies_->client_of(*request_).to_string();
}

bool RequestHead::is_tls() const {
  return request_->tls;
}

}  // namespace sluice

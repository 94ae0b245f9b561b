#include "auth/own_addresses.hpp"

#include <algorithm>
#include <ifaddrs.h>
#include <memory>
#include <netinet/in.h>
#include <utility>

namespace sluice {
namespace {

/// As it is on the wire. Empty: it is not an IP address.
std::string on_the_wire(const sockaddr* address) {
  if (address != nullptr && address->sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
    return {reinterpret_cast<const char*>(&v4), sizeof v4};
  }
  if (address != nullptr && address->sa_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
    return {reinterpret_cast<const char*>(&v6), sizeof v6};
  }
  return {};
}

}  // namespace

bool OwnAddresses::has(std::string_view address, TimePoint now) {
  const std::lock_guard lock(mutex_);
  if (now - read_at_ >= kPeriod) read(now);
  return std::ranges::find(addresses_, address) != addresses_.end();
}

void OwnAddresses::read(TimePoint now) {
  read_at_ = now;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  std::vector<std::string> addresses;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (std::string address = on_the_wire(entry->ifa_addr); !address.empty()) {
      addresses.push_back(std::move(address));
    }
  }
  addresses_ = std::move(addresses);
}

}  // namespace sluice

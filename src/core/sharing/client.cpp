#include "core/sharing/client.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <netinet/in.h>

namespace sluice {

std::string client_of(std::string_view principal) {
  std::string client(principal);
  in6_addr address{};
  if (client.find(':') == std::string::npos || inet_pton(AF_INET6, client.c_str(), &address) != 1 ||
      IN6_IS_ADDR_V4MAPPED(&address)) {
    return client;
  }
  static constexpr std::size_t kNetworkBytes = 8;
  std::fill(std::begin(address.s6_addr) + kNetworkBytes, std::end(address.s6_addr), 0);
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(AF_INET6, &address, text.data(), text.size());
  return client.assign(text.data()).append("/64");
}

}  // namespace sluice

#include "net/loop/peer_address.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <charconv>
#include <netinet/in.h>

namespace sluice {
namespace {

constexpr std::array<std::uint8_t, 12> kMappedPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};

}  // namespace

std::optional<PeerAddress> PeerAddress::parse(std::string_view text) {
  PeerAddress address;
  const std::string terminated(text);
  if (inet_pton(AF_INET6, terminated.c_str(), address.ip.data()) == 1) return address;
  address.ip = {};
  std::copy(kMappedPrefix.begin(), kMappedPrefix.end(), address.ip.begin());
  if (inet_pton(AF_INET, terminated.c_str(), address.ip.data() + kMappedPrefix.size()) != 1) {
    return std::nullopt;
  }
  return address;
}

bool PeerAddress::is_v4() const {
  return std::equal(kMappedPrefix.begin(), kMappedPrefix.end(), ip.begin());
}

bool PeerAddress::is_loopback() const {
  if (is_v4()) return ip[12] == 127;
  return std::all_of(ip.begin(), ip.end() - 1, [](std::uint8_t byte) { return byte == 0; }) &&
         ip[15] == 1;
}

std::array<std::uint8_t, 16> PeerAddress::network() const {
  std::array<std::uint8_t, 16> network = ip;
  if (!is_v4()) std::fill(network.begin() + 8, network.end(), std::uint8_t{0});
  return network;
}

std::string PeerAddress::to_string() const {
  if (is_v4()) {
    std::array<char, INET_ADDRSTRLEN> text{};
    char* end = text.data();
    for (std::size_t i = kMappedPrefix.size(); i < ip.size(); ++i) {
      if (end != text.data()) *end++ = '.';
      end = std::to_chars(end, text.data() + text.size(), ip[i]).ptr;
    }
    return {text.data(), end};
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(AF_INET6, ip.data(), text.data(), text.size());
  return text.data();
}

}  // namespace sluice

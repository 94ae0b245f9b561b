#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <sys/socket.h>
#include <vector>

#include "core/error.hpp"
#include "core/executor.hpp"

namespace sluice {

/// Where a server listens: an IP address and a port.
struct Endpoint {
  sockaddr_storage address{};
  socklen_t size = 0;
};
using Endpoints = std::vector<Endpoint>;

/// The endpoint of an address as text, IPv4 or IPv6; none if `host` is a name.
Endpoints endpoints_of_address(const std::string& host, std::uint16_t port);

/// A search for the addresses of a name (getaddrinfo), which may take long and so runs on one of a
/// few threads that all searches share. Destroying it forgets it.
class AddressLookup {
 public:
  /// On `loop`, never from within start(). The error's message is the reason alone.
  using Done = std::function<void(Result<Endpoints>)>;

  AddressLookup() = default;
  AddressLookup(const AddressLookup&) = delete;
  AddressLookup& operator=(const AddressLookup&) = delete;
  ~AddressLookup() { forget(); }

  /// `loop` outlives the search or its end by forget().
  void start(Executor& loop, std::string host, std::uint16_t port, Done done);
  void forget();

 private:
  struct Search;
  class Threads;
  std::shared_ptr<Search> search_;
};

}  // namespace sluice

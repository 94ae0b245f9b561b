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

/// The endpoint of an IPv4 or IPv6 address in text form. Empty if `host` is a name.
Endpoints endpoints_of_address(const std::string& host, std::uint16_t port);

/// Looks up the addresses of a name (getaddrinfo). That may take long, so it happens on one of a
/// few threads that all lookups share. The destructor calls forget().
class AddressLookup {
 public:
  /// Called on `loop`, never from within start(). An error's message is the reason alone.
  using Done = std::function<void(Result<Endpoints>)>;

  AddressLookup() = default;
  AddressLookup(const AddressLookup&) = delete;
  AddressLookup& operator=(const AddressLookup&) = delete;
  ~AddressLookup() { forget(); }

  /// `loop` must live until `done` is called or forget() returns.
  void start(Executor& loop, std::string host, std::uint16_t port, Done done);
  void forget();

 private:
  struct Search;
  class Threads;
  std::shared_ptr<Search> search_;
};

}  // namespace sluice

#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "core/executor.hpp"
#include "proxy/clients/proxy_client.hpp"

namespace sluice {

/// What to do when nobody uses something.
struct IdleEnd {
  Duration after = {};  // 0: never
  std::function<void()> run = {};
};

/// The one client that all clients of a proxy share, and who uses it. Belongs to its loop; owned by
/// shared pointers.
class SharedClient final : public std::enable_shared_from_this<SharedClient> {
 public:
  /// `idle.run` is called on the loop, again and again while nobody comes.
  SharedClient(Executor& loop, std::shared_ptr<ProxyClient> client, IdleEnd idle)
      : loop_(&loop), client_(std::move(client)), idle_(std::move(idle)) {}
  ~SharedClient();
  SharedClient(const SharedClient&) = delete;
  SharedClient& operator=(const SharedClient&) = delete;

  /// The client, which is in use until the pointer is destroyed.
  std::shared_ptr<ProxyClient> join();

 private:
  void left();
  void wait();

  Executor* loop_;
  std::shared_ptr<ProxyClient> client_;
  IdleEnd idle_;
  std::size_t users_ = 0;
  Executor::TimerId timer_ = 0;
};

}  // namespace sluice

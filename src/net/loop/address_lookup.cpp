#include "net/loop/address_lookup.hpp"

#include <cstddef>
#include <cstring>
#include <deque>
#include <mutex>
#include <netdb.h>
#include <thread>
#include <utility>

namespace sluice {
namespace {

constexpr std::size_t kMaxThreads = 4;
constexpr int kNotFound = 1;

Result<Endpoints> find_endpoints(const std::string& host, std::uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* list = nullptr;
  const int failure = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (failure != 0) return fail(kNotFound, ::gai_strerror(failure));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  Endpoints found;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    Endpoint& endpoint = found.emplace_back();
    std::memcpy(&endpoint.address, entry->ai_addr, entry->ai_addrlen);
    endpoint.size = entry->ai_addrlen;
  }
  return found;
}

}  // namespace

Endpoints endpoints_of_address(const std::string& host, std::uint16_t port) {
  return find_endpoints(host, port, AI_NUMERICHOST).value_or(Endpoints());
}

struct AddressLookup::Search : std::enable_shared_from_this<Search> {
  /// Runs on one of the threads.
  void run() {
    auto found = std::make_shared<Result<Endpoints>>(find_endpoints(host, port, 0));
    const std::lock_guard lock(mutex);
    if (loop == nullptr) return;
    loop->post([self = shared_from_this(), found = std::move(found)] {
      if (const Done told = std::exchange(self->done, {})) told(std::move(*found));
    });
  }

  std::string host;
  std::uint16_t port = 0;
  Done done;  // belongs to the loop's thread
  std::mutex mutex;
  Executor* loop = nullptr;  // null after forget(); guarded by mutex
};

/// Threads that exist while there are searches to run. They are detached, because a search cannot
/// be interrupted.
class AddressLookup::Threads {
 public:
  static Threads& shared() {
    static auto* const threads = new Threads;  // may be in use when the process ends
    return *threads;
  }

  void add(std::shared_ptr<Search> search) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(search));
    if (count_ == kMaxThreads) return;
    std::thread([this] { run(); }).detach();
    ++count_;
  }

 private:
  void run() {
    while (const std::shared_ptr<Search> search = next()) search->run();
  }
  /// Returns null if there is no search left; the calling thread is then no longer counted.
  std::shared_ptr<Search> next() {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) {
      --count_;
      return nullptr;
    }
    std::shared_ptr<Search> search = std::move(waiting_.front());
    waiting_.pop_front();
    return search;
  }

  std::mutex mutex_;
  std::deque<std::shared_ptr<Search>> waiting_;
  std::size_t count_ = 0;
};

void AddressLookup::start(Executor& loop, std::string host, std::uint16_t port, Done done) {
  forget();
  search_ = std::make_shared<Search>();
  search_->host = std::move(host);
  search_->port = port;
  search_->done = std::move(done);
  search_->loop = &loop;
  Threads::shared().add(search_);
}

void AddressLookup::forget() {
  const std::shared_ptr<Search> search = std::exchange(search_, nullptr);
  if (search == nullptr) return;
  search->done = nullptr;
  const std::lock_guard lock(search->mutex);
  search->loop = nullptr;
}

}  // namespace sluice

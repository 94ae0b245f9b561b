#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "client/backoff.hpp"
#include "client/session/client_session.hpp"
#include "core/executor.hpp"

namespace sluice {

class Upstream;

/// Makes a server tell of the changes that its client wants to hear of, in either era: by
/// `resources/subscribe`, or by one `subscriptions/listen`, which is begun anew whenever the server
/// ends it or other changes are wanted. Changes of lists come unasked in the legacy era. Belongs to
/// its loop; owned by shared pointers.
class ChangeFeed final : public std::enable_shared_from_this<ChangeFeed> {
 public:
  using Uris = std::set<std::string, std::less<>>;

  ChangeFeed(Executor& loop, std::shared_ptr<const Upstream> upstream)
      : loop_(&loop), upstream_(std::move(upstream)) {}
  ~ChangeFeed();
  ChangeFeed(const ChangeFeed&) = delete;
  ChangeFeed& operator=(const ChangeFeed&) = delete;

  /// `session` is open, and new to the server. Null: there is none.
  void attach(std::shared_ptr<ClientSession> session);
  void want(bool lists, Uris uris);
  /// The client itself subscribes to this, at a legacy server.
  void adopt(const std::string& uri) { told_.insert(uri); }
  /// The server has refused that.
  void disown(const std::string& uri) { told_.erase(uri); }

 private:
  void tell();
  void subscribe();
  void listen();
  void on_ended(std::uint64_t round, const Result<json::object>& answer);

  Executor* loop_;
  std::shared_ptr<const Upstream> upstream_;
  std::shared_ptr<ClientSession> session_;  // or null
  bool lists_ = false;
  Uris uris_;
  bool told_lists_ = false;  // what the server has been asked for
  Uris told_;
  ClientSession::Number listening_ = 0;
  std::uint64_t round_ = 0;  // of listening
  Backoff backoff_{{.first = std::chrono::seconds(1),
                    .longest = std::chrono::seconds(30),
                    .attempts = UINT32_MAX}};
  Executor::TimerId timer_ = 0;
};

}  // namespace sluice

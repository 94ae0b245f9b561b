#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "client/backoff.hpp"
#include "client/session/client_session.hpp"
#include "core/executor.hpp"
#include "proxy/upstream/feed_owner.hpp"

namespace sluice {

class Upstream;

/// The URIs of resources.
using Uris = std::set<std::string, std::less<>>;

/// What a server of the legacy era is subscribed to in one session: it is asked by
/// `resources/subscribe` and `resources/unsubscribe`, a few at a time, until that is what its
/// client wants. A request that has failed for a reason that may pass is made again, later, one
/// after the other. Belongs to its loop; owned by shared pointers. Ends with its session.
class Subscriptions final : public std::enable_shared_from_this<Subscriptions> {
 public:
  /// `owner` outlives this, or leave() is called.
  Subscriptions(Executor& loop, std::shared_ptr<const Upstream> upstream,
                std::shared_ptr<ClientSession> session, FeedOwner& owner)
      : loop_(&loop),
        upstream_(std::move(upstream)),
        session_(std::move(session)),
        owner_(&owner) {}
  ~Subscriptions();
  Subscriptions(const Subscriptions&) = delete;
  Subscriptions& operator=(const Subscriptions&) = delete;

  /// `may_renew`: the requests may begin a session in place of one that is forgotten. Only what a
  /// client wants may, or a server that forgets each one would get one after the other.
  void want(std::shared_ptr<const Uris> uris, bool may_renew);
  /// The client itself subscribes to this.
  void adopt(const std::string& uri) { told_.insert(uri); }
  /// The server has refused that.
  void disown(const std::string& uri) { told_.erase(uri); }
  /// Drops the requests without an answer, because the session goes on with another memory: they
  /// would be repeated there, in any order.
  void forget();
  /// Tells nobody any more.
  void leave() { owner_ = nullptr; }

 private:
  struct Asked {
    std::string uri;
    bool subscribes;
    bool is_retry;
  };

  [[nodiscard]] bool is_wanted(const std::string& uri) const { return uris_->contains(uri); }
  [[nodiscard]] bool is_as_wanted(const std::string& uri) const {
    if (!is_wanted(uri)) return !told_.contains(uri);
    return told_.contains(uri) && !unknown_.contains(uri);
  }
  /// Asks about those that are due, as far as there is room.
  void ask_next();
  /// Call once the request before about the same resource is answered.
  void ask(const std::string& uri, bool is_retry);
  void on_answered(const Asked& asked, const Result<json::object>& answer);
  void retry_later();
  /// Asks again about one that has failed, unless there is a pause.
  void retry();

  Executor* loop_;
  std::shared_ptr<const Upstream> upstream_;
  std::shared_ptr<ClientSession> session_;
  FeedOwner* owner_;                                             // null: it is not told
  std::shared_ptr<const Uris> uris_ = std::make_shared<Uris>();  // that are wanted
  Uris untaken_;  // those that the server has not taken since they began to be wanted
  bool may_renew_ = false;
  Uris told_;     // what the server has been asked for
  Uris unknown_;  // those of which it is not known what the server has done
  Uris due_;      // those to be asked about, as far as they are not as wanted
  /// The requests that have no answer yet, by their URIs.
  std::map<std::string, ClientSession::Number> under_way_;
  std::deque<std::string> failed_;  // those to be asked about again
  bool is_retrying_ = false;        // one of them is under way
  Backoff pause_{{.first = std::chrono::seconds(1),
                  .longest = std::chrono::seconds(30),
                  .attempts = UINT32_MAX}};
  Executor::TimerId timer_ = 0;
};

}  // namespace sluice

#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
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

  /// What changes may have been missed of.
  struct Unheard {
    bool lists = false;
    Uris uris;
    bool is_after_break = false;  // the server had told of them before
    [[nodiscard]] bool empty() const { return !lists && uris.empty(); }
  };

  /// `on_asked` is called when a modern server is asked for changes, unless it has not acknowledged
  /// others yet.
  ChangeFeed(Executor& loop, std::shared_ptr<const Upstream> upstream,
             std::function<void()> on_asked)
      : loop_(&loop), upstream_(std::move(upstream)), on_asked_(std::move(on_asked)) {}
  ~ChangeFeed();
  ChangeFeed(const ChangeFeed&) = delete;
  ChangeFeed& operator=(const ChangeFeed&) = delete;

  /// `session` is open, and new to the server. Null: there is none.
  void attach(std::shared_ptr<ClientSession> session);
  void want(bool lists, Uris uris);
  /// Everything that is wanted.
  [[nodiscard]] Unheard wanted() const { return {.lists = lists_, .uris = uris_}; }
  /// Whether a modern server acknowledges what it was asked for last.
  [[nodiscard]] bool is_acknowledged_by(const json::object& params) const;
  /// What a modern server has been asked for and has not acknowledged. It has, now.
  Unheard take_unheard();
  /// The client itself subscribes to this, at a legacy server.
  void adopt(const std::string& uri) { told_.insert(uri); }
  /// The server has refused that.
  void disown(const std::string& uri) { told_.erase(uri); }

 private:
  void tell();
  /// Finds out which subscriptions a legacy server is to begin and to end.
  void subscribe();
  /// Asks it for those, a few at a time.
  void ask_next();
  /// Call once the request before about the same resource is answered.
  void ask(const std::string& uri, bool may_renew);
  [[nodiscard]] bool is_as_wanted(const std::string& uri) const {
    if (!uris_.contains(uri)) return !told_.contains(uri);
    return told_.contains(uri) && !unknown_.contains(uri);
  }
  void on_answered(const std::string& uri, bool subscribes, const Result<json::object>& answer);
  void listen();
  void on_ended(std::uint64_t round, const Result<json::object>& answer);
  /// Calls `again` after a while, unless there is another session by then.
  void try_later(void (ChangeFeed::*again)());
  /// Asks again about one that has failed, unless there is a pause.
  void retry();

  Executor* loop_;
  std::shared_ptr<const Upstream> upstream_;
  const std::function<void()> on_asked_;
  std::shared_ptr<ClientSession> session_;  // or null
  bool lists_ = false;
  Uris uris_;
  bool told_lists_ = false;  // what the server has been asked for
  Uris told_;
  Unheard unheard_;
  /// The requests to a legacy server that have no answer yet, by their URIs.
  std::map<std::string, ClientSession::Number> under_way_;
  Uris due_;                        // those to be asked about, as far as they are not as wanted
  std::deque<std::string> failed_;  // those to be asked about again, one after the other
  std::string retried_;             // the one of these that is under way; empty: none
  Uris unknown_;                    // those of which it is not known what the server has done
  /// Whether the next requests may begin a session in place of one that is forgotten: only what a
  /// client wants may, or a server that forgets each one would get one after the other.
  bool may_renew_ = false;
  bool cannot_listen_ = false;            // the server of this session
  bool has_listened_ = false;             // it has told of changes in this session
  std::optional<TimePoint> heard_since_;  // the last acknowledgement, until the stream ends
  ClientSession::Number listening_ = 0;
  std::uint64_t round_ = 0;  // of listening
  Backoff backoff_{{.first = std::chrono::seconds(1),
                    .longest = std::chrono::seconds(30),
                    .attempts = UINT32_MAX}};
  Executor::TimerId timer_ = 0;
};

}  // namespace sluice

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "client/backoff.hpp"
#include "client/session/client_session.hpp"
#include "core/executor.hpp"
#include "proxy/upstream/feed_owner.hpp"
#include "proxy/upstream/subscriptions.hpp"

namespace sluice {

/// Has a server of the modern era tell of changes in one session, by one `subscriptions/listen`
/// (2026-07-28, Subscriptions), which is begun anew whenever the server ends it or other changes
/// are wanted. Belongs to its loop; owned by shared pointers. Ends with its session.
class Listening final : public std::enable_shared_from_this<Listening> {
 public:
  /// What changes may have been missed of.
  struct Unheard {
    bool lists = false;
    Uris uris;
    bool is_after_break = false;  // the server had told of them before
    [[nodiscard]] bool empty() const { return !lists && uris.empty(); }
  };

  /// `owner` outlives this, or leave() is called.
  Listening(Executor& loop, std::shared_ptr<ClientSession> session, FeedOwner& owner)
      : loop_(&loop), session_(std::move(session)), owner_(&owner) {}
  ~Listening();
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

  /// Tells nobody any more.
  void leave() { owner_ = nullptr; }
  void want(bool lists, std::shared_ptr<const Uris> uris);
  /// Whether the server acknowledges what it was asked for last.
  [[nodiscard]] bool is_acknowledged_by(const json::object& params) const;
  /// What the server has been asked for and has not acknowledged. It has, now.
  Unheard take_unheard();

 private:
  void listen();
  /// `round`: of listening.
  void on_ended(std::uint64_t round, const Result<json::object>& answer);

  Executor* loop_;
  std::shared_ptr<ClientSession> session_;
  FeedOwner* owner_;    // null: it is not told
  bool lists_ = false;  // what is wanted
  std::shared_ptr<const Uris> uris_ = std::make_shared<Uris>();
  bool told_lists_ = false;  // what the server has been asked for
  std::shared_ptr<const Uris> told_ = uris_;
  Unheard unheard_;
  bool cannot_listen_ = false;            // the server
  bool has_listened_ = false;             // it has told of changes
  std::optional<TimePoint> heard_since_;  // the last acknowledgement, until the stream ends
  ClientSession::Number listening_ = 0;
  std::uint64_t round_ = 0;
  Backoff pause_{{.first = std::chrono::seconds(1),
                  .longest = std::chrono::seconds(30),
                  .attempts = UINT32_MAX}};
  Executor::TimerId timer_ = 0;
};

}  // namespace sluice

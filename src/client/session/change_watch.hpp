#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/backoff.hpp"
#include "client/session/session_activity.hpp"

namespace sluice {

/// What a client wants to be told of.
struct WatchFilter {
  bool tools = false;  // changes of the lists
  bool prompts = false;
  bool resources = false;
  std::vector<std::string> uris = {};  // changes of these resources
  std::string level = {};              // log messages of at least this level; empty: none
};

/// Hears of changes, in either era: by subscriptions/listen (2026-07-28, Subscriptions), which is
/// sent again when its stream breaks off; or by resources/subscribe and logging/setLevel, which are
/// sent again when the session is renewed. A legacy session is asked now and then whether it is
/// still there. Reports each notification as an object of `method` and `params`. Its answer comes
/// when the server says that it tells no more.
class ChangeWatch final : public SessionActivity {
 public:
  ChangeWatch(ClientSession& session, Executor& loop, WatchFilter filter,
              RequestCallbacks callbacks);

  bool on_notification(std::string_view method, const json::object& params) override;
  void on_renewed() override { subscribe(); }
  [[nodiscard]] bool watches(std::string_view uri) const override;

  static constexpr Duration kPingInterval = std::chrono::seconds(30);

 private:
  void begin() override;
  /// The server of a legacy session need not tell of what nobody else watches.
  void leave() override;
  void listen();
  /// Drops the kept results of what is watched: of a change while nobody listened, nothing is told.
  void distrust();
  void subscribe();
  void ping_later();
  [[nodiscard]] bool wants(std::string_view method) const;

  const WatchFilter filter_;
  Backoff backoff_;
  Number listening_ = 0;
  bool is_behind_ = false;  // the server may not know of all that is watched
};

}  // namespace sluice

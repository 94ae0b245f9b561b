#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include <boost/container/flat_map.hpp>

#include "client/backoff.hpp"
#include "client/session/requests/request.hpp"
#include "core/executor.hpp"
#include "core/recycling.hpp"
#include "json/json.hpp"

namespace sluice {

/// How often a request is sent again whose stream broke off, and after which waits.
inline constexpr Backoff::Policy kReissues = {.attempts = 3};

/// Whether a request of this method, which is no call of a tool, changes nothing at the server.
bool only_reads(std::string_view method);

/// A request that is unanswered, in any of its rounds.
struct OpenRequest {
  std::string method;
  json::object params;  // of the current round
  RequestOptions options;
  RequestCallbacks callbacks;
  std::int64_t id = 0;         // of the current round; 0 while it is not with the server
  RequestId paused = {};       // the id under which the link was told to pause it; empty: none
  int rounds = 0;              // that have ended
  bool is_paused = false;      // in each of its rounds
  bool was_held = false;       // for a new session
  bool was_asked = false;      // by the server, in the reply to this round
  bool was_refreshed = false;  // the tools have been listed again for it
  json::object inputs{};       // the answers of this round
  std::map<std::string, std::uint64_t> open_inputs{};  // by their keys: its unanswered questions
  std::uint64_t session = 0;                           // that this round belongs to
  bool can_be_left = false;                            // for somebody who takes up its answer
  std::uint64_t next_part = 0;       // of the result: its number, also if this round is sent again
  std::uint64_t faults = 0;          // of the server, before this request
  Backoff reissues{kReissues};       // after its stream broke off
  Executor::TimerId wait_timer = 0;  // for the server, or for the next attempt
  Executor::TimerId timer = 0;
};

/// The unanswered requests of a session, by their numbers and by the ids that the server knows, and
/// their timers. Belongs to the session.
class OpenRequests {
 public:
  using Number = std::uint64_t;
  using Map = RecycledMap<Number, OpenRequest>;

  /// `give_up` is called when a request's time is over, with what there is to say of that.
  OpenRequests(Executor& loop, std::function<void(Number, const char* why)> give_up)
      : loop_(&loop), give_up_(std::move(give_up)) {}
  ~OpenRequests();
  OpenRequests(const OpenRequests&) = delete;
  OpenRequests& operator=(const OpenRequests&) = delete;

  OpenRequest& add(Number number, OpenRequest request);
  /// Null if there is none.
  OpenRequest* find(Number number);
  [[nodiscard]] const OpenRequest* find(Number number) const;
  /// The number of the request that the server knows by this id, as JSON text; 0 if there is none.
  [[nodiscard]] Number number_of(std::string_view id) const;
  /// Takes a request out, with its timers stopped.
  OpenRequest take(Number number);
  [[nodiscard]] const Map& all() const { return all_; }
  [[nodiscard]] std::size_t size() const { return all_.size(); }

  /// Gives the request the id of a new round.
  void begin_round(Number number, OpenRequest& request);
  /// Gives it the id that the server knows it by already, before there are others.
  void take_up_round(Number number, OpenRequest& request, std::int64_t id);
  /// The server is done with the round, so nothing is expected of it.
  void end_round(OpenRequest& request);
  /// Waits for the server from now on, for as long as it may be silent.
  void expect(Number number, OpenRequest& request);
  /// Nothing is expected for now: neither the server nor the next attempt.
  void stop_waiting(OpenRequest& request);
  /// Calls `then` after `wait`, unless the request is over by then.
  void later(OpenRequest& request, Duration wait, std::function<void()> then);

 private:
  Executor* loop_;
  std::function<void(Number, const char* why)> give_up_;
  Map all_;
  // Ids grow, so the newest goes to the end, and nothing is allocated for it.
  boost::container::flat_map<std::int64_t, Number> by_id_;
  std::int64_t last_id_ = 0;
};

}  // namespace sluice

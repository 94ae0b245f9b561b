#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "engine/methods/model_session.hpp"
#include "server/catalog/definition.hpp"

namespace sluice {

/// The sessions of all clients of an engine. A client has one for each of its connections, or one
/// of its own if it alone has its principal; others name theirs by its id. Those that are not used
/// for an hour end, and the oldest one of a client that begins too many. Thread-safe.
class ModelSessions {
 public:
  static constexpr std::size_t kMax = 10'000;
  static constexpr std::size_t kMaxOfPrincipal = 16;    // that no connection has
  static constexpr std::size_t kMaxConnections = 1000;  // of a principal
  static constexpr Duration kExpiry = std::chrono::hours(1);

  explicit ModelSessions(const Clock& clock);

  /// The session that `handle_id` in `params` names, or else the caller's own; null if it has none.
  /// Error: -32602 if the caller has no session of that name.
  [[nodiscard]] Result<std::shared_ptr<ModelSession>> find(const json::object& params,
                                                           const MethodCaller& caller) const;
  struct Begun {
    std::string handle_id;
    std::shared_ptr<ModelSession> session;
    bool is_new;
  };
  /// The caller's own session, or a new one. Error: kLimitReached if there are too many.
  Result<Begun> begin(const MethodCaller& caller, const RunSettings& settings,
                      std::shared_ptr<MemoryShare> memory);
  /// Ends what find() would find. Returns whether there was one.
  Result<bool> end(const json::object& params, const MethodCaller& caller);
  /// Whether the caller has a place for a session that nobody else uses.
  static bool has_own_place(const MethodCaller& caller);

 private:
  class Table;
  struct Place;
  /// The id of what find() looks for; empty: there is none.
  [[nodiscard]] Result<std::string> id_of(const json::object& params,
                                          const MethodCaller& caller) const;

  std::shared_ptr<Table> table_;
};

}  // namespace sluice

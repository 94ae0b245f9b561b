#include "server/sse_sessions.hpp"

#include <utility>

#include "core/random.hpp"
#include "server/sse_connection.hpp"

namespace sluice {

Result<std::unique_ptr<SseSessions::Entry>> SseSessions::add(const std::string& principal,
                                                             Route route) {
  Result<std::unique_ptr<SessionRegistry::Place>> place =
      registry_->take_place(principal, [loop = route.loop, weak = route.connection] {
        loop->post([weak] {
          if (const auto connection = weak.lock()) connection->end();
        });
      });
  if (!place) return std::unexpected(std::move(place.error()));
  const std::string id = random_id(SessionRegistry::kIdLength);
  {
    const std::lock_guard lock(mutex_);
    sessions_.emplace(id, Session{principal, std::move(route)});
  }
  return std::make_unique<Entry>(*this, id, std::move(*place));
}

std::optional<SseSessions::Route> SseSessions::find(std::string_view id,
                                                    std::string_view principal) const {
  const std::string key(id);
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(key);
  if (found == sessions_.end() || !constant_time_equal(found->second.principal, principal)) {
    return std::nullopt;
  }
  return found->second.route;
}

void SseSessions::remove(const std::string& id) {
  const std::lock_guard lock(mutex_);
  sessions_.erase(id);
}

}  // namespace sluice

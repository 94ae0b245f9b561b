#include "server/transport/http/sse_sessions.hpp"

#include <utility>

#include "core/crypto/random.hpp"
#include "server/transport/http/sse_connection.hpp"

namespace sluice {

Result<std::unique_ptr<SseSessions::Entry>> SseSessions::add(const std::string& principal,
                                                             Route route) {
  auto entry = std::make_unique<Entry>(*this, random_id(SessionRegistry::kIdLength), principal,
                                       std::move(route));
  if (Result<void> taken = registry_->take(*entry); !taken) {
    return std::unexpected(std::move(taken.error()));
  }
  const std::lock_guard lock(mutex_);
  entries_.emplace(entry->id(), entry.get());
  return entry;
}

std::optional<SseSessions::Route> SseSessions::find(std::string_view id,
                                                    std::string_view principal) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end() || !constant_time_equal(found->second->principal(), principal)) {
    return std::nullopt;
  }
  return found->second->route_;
}

void SseSessions::remove(Entry& entry) {
  registry_->give_back(entry);
  const std::lock_guard lock(mutex_);
  entries_.erase(entry.id());
}

void SseSessions::Entry::end_later() {
  route_.loop->post([weak = route_.connection] {
    if (const auto connection = weak.lock()) connection->end();
  });
}

}  // namespace sluice

#include "engine/methods/model_sessions.hpp"

#include <atomic>
#include <cstdint>
#include <iterator>
#include <list>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "core/crypto/random.hpp"
#include "core/log/over_limit.hpp"
#include "protocol/parameters.hpp"
#include "rpc/error_codes.hpp"
#include "server/sessions/session_storage.hpp"

namespace sluice {
namespace {

constexpr std::size_t kIdLength = 16;

}  // namespace

/// The sessions by their ids.
class ModelSessions::Table {
 public:
  explicit Table(const Clock& clock) : clock_(&clock) {}

  [[nodiscard]] bool is_empty() const { return size_ == 0; }

  std::shared_ptr<ModelSession> find(const std::string& id, const std::string& principal) {
    const std::lock_guard lock(mutex_);
    end_expired();
    const auto found = entries_.find(id);
    if (found == entries_.end() || found->second.principal != principal) return nullptr;
    Entry& entry = found->second;
    entry.used = clock_->now();
    order_.splice(order_.end(), order_, entry.place);
    return entry.session;
  }
  /// The session that the principal has for itself; empty: none.
  std::string own_of(const std::string& principal) {
    const std::lock_guard lock(mutex_);
    const auto found = own_.find(principal);
    return found == own_.end() ? std::string() : found->second;
  }

  enum class Whose : std::uint8_t { connection, principal, handle };
  Result<std::string> add(const std::shared_ptr<ModelSession>& session,
                          const std::string& principal, Whose whose) {
    const std::lock_guard lock(mutex_);
    end_expired();
    if (whose != Whose::connection) {
      std::vector<std::string>& loose = loose_[principal];
      if (loose.size() >= kMaxOfPrincipal) remove_locked(std::string(loose.front()));
    } else if (connected_[principal] >= kMaxConnections) {
      return over_limit("You have too many sessions with the model; end some");
    }
    if (entries_.size() >= kMax) return over_limit("There are too many sessions; try again later");
    std::string id = random_id(kIdLength);
    order_.push_back(id);
    entries_.emplace(id, Entry{.session = session,
                               .principal = principal,
                               .used = clock_->now(),
                               .place = std::prev(order_.end()),
                               .whose = whose});
    if (whose != Whose::connection) loose_[principal].push_back(id);
    if (whose == Whose::connection) ++connected_[principal];
    if (whose == Whose::principal) own_[principal] = id;
    size_ = entries_.size();
    return id;
  }
  bool remove(const std::string& id, const std::string& principal) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end() || found->second.principal != principal) return false;
    remove_locked(id);
    return true;
  }
  /// Whoever has the place of the session is gone.
  void remove(const std::string& id) {
    const std::lock_guard lock(mutex_);
    remove_locked(id);
  }

 private:
  struct Entry {
    std::shared_ptr<ModelSession> session;
    std::string principal;
    TimePoint used;
    std::list<std::string>::iterator place;
    Whose whose;
  };
  void remove_locked(const std::string& id) {
    const auto found = entries_.find(id);
    if (found == entries_.end()) return;
    const Entry& entry = found->second;
    if (entry.whose == Whose::connection) {
      const auto connected = connected_.find(entry.principal);
      if (--connected->second == 0) connected_.erase(connected);
    }
    if (const auto loose = loose_.find(entry.principal); loose != loose_.end()) {
      std::erase(loose->second, id);
      if (loose->second.empty()) loose_.erase(loose);
    }
    if (const auto own = own_.find(entry.principal); own != own_.end() && own->second == id) {
      own_.erase(own);
    }
    order_.erase(entry.place);
    entries_.erase(found);
    size_ = entries_.size();
  }
  void end_expired() {
    const TimePoint now = clock_->now();
    while (!order_.empty()) {
      const std::string oldest = order_.front();
      if (now - entries_.at(oldest).used < kExpiry) return;
      remove_locked(oldest);
    }
  }

  const Clock* clock_;
  std::mutex mutex_;
  std::map<std::string, Entry> entries_;
  std::list<std::string> order_;  // the ids; the one that was used longest ago is first
  std::map<std::string, std::vector<std::string>> loose_;  // by principal; no connection has them
  std::map<std::string, std::size_t> connected_;           // sessions of connections, by principal
  std::map<std::string, std::string> own_;                 // by principal
  std::atomic<std::size_t> size_ = 0;
};

/// The session of a connection, which ends with it.
struct ModelSessions::Place {
  static std::shared_ptr<Place> of(const MethodCaller& caller) {
    const std::shared_ptr<SessionStorage> storage = caller.storage ? caller.storage() : nullptr;
    if (storage == nullptr) return nullptr;
    static constexpr char kType = 0;
    return std::static_pointer_cast<Place>(storage->value(
        &kType, +[]() -> std::shared_ptr<void> { return std::make_shared<Place>(); }));
  }

  Place() = default;
  ~Place() {
    if (const auto kept = table.lock()) kept->remove(id);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  std::string id_now() {
    const std::lock_guard lock(mutex);
    return id;
  }

  std::mutex mutex;
  std::string id;
  std::weak_ptr<Table> table;
};

ModelSessions::ModelSessions(const Clock& clock) : table_(std::make_shared<Table>(clock)) {}

bool ModelSessions::has_own_place(const MethodCaller& caller) {
  return caller.principal.isolated || (caller.storage && caller.storage() != nullptr);
}

Result<std::string> ModelSessions::id_of(const json::object& params,
                                         const MethodCaller& caller) const {
  const json::value* const named = find_parameter(params, "handle_id");
  if (named != nullptr && named->is_string()) return std::string(named->get_string());
  // The original's handle was always 1.
  if (named != nullptr && !integer_of(*named)) {
    return fail(kInvalidParams, "Invalid params: handle_id must be what init has returned");
  }
  if (const auto place = Place::of(caller)) return place->id_now();
  return caller.principal.isolated ? table_->own_of(caller.principal.id) : std::string();
}

Result<std::shared_ptr<ModelSession>> ModelSessions::find(const json::object& params,
                                                          const MethodCaller& caller) const {
  if (table_->is_empty() && find_parameter(params, "handle_id") == nullptr) return nullptr;
  const Result<std::string> id = id_of(params, caller);
  if (!id) return std::unexpected(id.error());
  if (id->empty()) return nullptr;
  std::shared_ptr<ModelSession> session = table_->find(*id, caller.principal.id);
  const json::value* const named = find_parameter(params, "handle_id");
  if (session == nullptr && named != nullptr && named->is_string()) {
    return fail(kInvalidParams,
                "Invalid params: you have no session of this handle_id; it may have ended, so call "
                "init again");
  }
  return session;
}

Result<ModelSessions::Begun> ModelSessions::begin(const MethodCaller& caller,
                                                  const RunSettings& settings,
                                                  std::shared_ptr<MemoryShare> memory) {
  using Whose = Table::Whose;
  const std::string& principal = caller.principal.id;
  const auto make = [&](Whose whose) -> Result<Begun> {
    auto session = std::make_shared<ModelSession>(settings, std::move(memory));
    Result<std::string> id = table_->add(session, principal, whose);
    if (!id) return std::unexpected(std::move(id.error()));
    return Begun{.handle_id = *std::move(id), .session = std::move(session), .is_new = true};
  };
  const auto known = [&](const std::string& id) { return table_->find(id, principal); };
  if (const auto place = Place::of(caller)) {
    const std::lock_guard lock(place->mutex);
    if (auto session = known(place->id)) {
      return Begun{.handle_id = place->id, .session = std::move(session), .is_new = false};
    }
    Result<Begun> begun = make(Whose::connection);
    if (!begun) return begun;
    place->id = begun->handle_id;
    place->table = table_;
    return begun;
  }
  if (!caller.principal.isolated) return make(Whose::handle);
  const std::string own = table_->own_of(principal);
  if (auto session = known(own)) {
    return Begun{.handle_id = own, .session = std::move(session), .is_new = false};
  }
  return make(Whose::principal);
}

Result<bool> ModelSessions::end(const json::object& params, const MethodCaller& caller) {
  const Result<std::string> id = id_of(params, caller);
  if (!id) return std::unexpected(id.error());
  return table_->remove(*id, caller.principal.id);
}

}  // namespace sluice

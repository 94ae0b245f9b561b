#include "core/sharing/client_memory.hpp"

#include <map>
#include <mutex>
#include <utility>

#include "core/sharing/client.hpp"

namespace sluice {

struct ClientMemory::Table {
  struct Share {
    std::weak_ptr<MemoryShare> share;
    /// How many shares refer to this place. The client may get a new share while the previous one
    /// is being destroyed.
    std::size_t entries = 0;
  };
  using Shares = std::map<std::string, Share, std::less<>>;
  std::mutex mutex;
  Shares shares;
};

/// A share that removes itself from the table when it is destroyed.
class ClientMemory::Entry final : public MemoryShare {
 public:
  /// Requires that the table is locked.
  Entry(MemoryBudget& budget, std::shared_ptr<Table> table, Table::Shares::iterator at)
      : MemoryShare(budget), table_(std::move(table)), at_(at) {
    ++at_->second.entries;
  }
  ~Entry() {
    const std::lock_guard lock(table_->mutex);
    if (--at_->second.entries == 0) table_->shares.erase(at_);
  }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  [[nodiscard]] const std::string& client() const { return at_->first; }

 private:
  std::shared_ptr<Table> table_;
  Table::Shares::iterator at_;
};

ClientMemory::ClientMemory(MemoryBudget& budget)
    : budget_(&budget), table_(std::make_shared<Table>()) {}

std::shared_ptr<MemoryShare> ClientMemory::of(const std::string& principal) {
  std::string client = client_of(principal);
  const std::lock_guard lock(table_->mutex);
  const auto at = table_->shares.try_emplace(std::move(client)).first;
  std::shared_ptr<MemoryShare> share = at->second.share.lock();
  if (share == nullptr) {
    share = std::make_shared<Entry>(*budget_, table_, at);
    at->second.share = share;
  }
  return share;
}

const std::string& ClientMemory::client(const MemoryShare& share) {
  return static_cast<const Entry&>(share).client();
}

}  // namespace sluice

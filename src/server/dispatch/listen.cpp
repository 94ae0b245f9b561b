#include "server/dispatch/listen.hpp"

#include <utility>

#include "rpc/error_codes.hpp"
#include "server/dispatch/forwarder.hpp"

namespace sluice {
namespace {

/// The bytes that a task which is followed takes besides its id.
constexpr std::size_t kPerTask = 128;
constexpr std::string_view kSubscriptionIdKey = "io.modelcontextprotocol/subscriptionId";

Result<bool> flag_at(const json::object& filter, std::string_view key) {
  const json::value* const value = filter.if_contains(key);
  if (value == nullptr) return false;
  if (!value->is_bool()) {
    return fail(kInvalidParams,
                "Invalid params: notifications." + std::string(key) + " must be a boolean");
  }
  return value->get_bool();
}

/// The strings of the array at `key`; empty if there is none.
Result<std::set<std::string, std::less<>>> strings_at(const json::object& filter,
                                                      std::string_view key) {
  std::set<std::string, std::less<>> strings;
  const json::value* const given = filter.if_contains(key);
  if (given == nullptr) return strings;
  const std::string name = "Invalid params: notifications." + std::string(key);
  if (!given->is_array()) return fail(kInvalidParams, name + " must be an array");
  if (given->get_array().size() > Session::kMaxSubscriptions) {
    return fail(kInvalidParams,
                name + " has more than " + std::to_string(Session::kMaxSubscriptions) + " entries");
  }
  std::size_t bytes = 0;
  for (const json::value& each : given->get_array()) {
    if (!each.is_string()) return fail(kInvalidParams, name + " must hold strings");
    bytes += each.get_string().size();
    strings.emplace(each.get_string());
  }
  if (bytes > Session::kMaxSubscribedBytes) {
    return fail(kInvalidParams,
                name + " has more than " + std::to_string(Session::kMaxSubscribedBytes) + " bytes");
  }
  return strings;
}

void append_strings(std::string& out, const auto& strings) {
  out.push_back('[');
  for (const std::string& each : strings) {
    if (out.back() != '[') out.push_back(',');
    append_json_string(out, each);
  }
  out.push_back(']');
}

/// One subscription. Keeps itself alive until its client stops listening.
class Listening final : public ChangeListener,
                        public StreamProducer,
                        public std::enable_shared_from_this<Listening> {
 public:
  Listening(std::shared_ptr<PendingRequest> call, const RequestId& id, SubscriptionFilter filter,
            MemoryHold memory, std::vector<std::shared_ptr<TaskRecord>> tasks)
      : call_(std::move(call)),
        meta_("\"" + std::string(kSubscriptionIdKey) + "\":" + id),
        filter_(std::move(filter)),
        memory_(std::move(memory)) {
    for (auto& task : tasks) {
      followers_.push_back(std::make_shared<Follower>(*this, std::move(task)));
    }
  }

  void start() {
    self_ = shared_from_this();
    call_->set_producer(this);
    std::string params = R"({"_meta":{)" + meta_ + R"(},"notifications":{)";
    const auto flag = [&params](bool wanted, std::string_view name) {
      if (!wanted) return;
      if (params.back() != '{') params.push_back(',');
      params.append("\"").append(name).append("\":true");
    };
    flag(filter_.tools, "toolsListChanged");
    flag(filter_.prompts, "promptsListChanged");
    flag(filter_.resources, "resourcesListChanged");
    if (!filter_.uris.empty()) {
      if (params.back() != '{') params.push_back(',');
      params.append(R"("resourceSubscriptions":)");
      append_strings(params, filter_.uris);
    }
    if (filter_.task_ids) {
      std::erase_if(followers_, [this](const std::shared_ptr<Follower>& each) {
        return !each->task->observe(call_->executor(), each).has_value();
      });
      std::vector<std::string> ids;
      for (const auto& follower : followers_) ids.push_back(follower->task->id());
      if (params.back() != '{') params.push_back(',');
      params.append(R"("taskIds":)");
      append_strings(params, ids);
    }
    call_->notify("notifications/subscriptions/acknowledged", params + "}}");
    for (const auto& follower : followers_) follower->on_task_change();
    call_->flush();
  }

  /// Hears of what happens elsewhere as long as it listens.
  void hear(Forwarder& from) {
    if (self_ == nullptr) return;
    auto source = from.listen(filter_, call_, weak_from_this());
    if (source) {
      source_ = *std::move(source);
    } else {
      call_->set_producer(nullptr);
      call_->fail(source.error());
      on_cancel();
    }
  }

  [[nodiscard]] bool wants(const Change& change) const override {
    switch (change.kind) {
      case Change::Kind::tools:
        return filter_.tools;
      case Change::Kind::prompts:
        return filter_.prompts;
      case Change::Kind::resources:
        return filter_.resources;
      case Change::Kind::resource:
        return filter_.uris.contains(change.subject);
      case Change::Kind::elicitation:
        break;  // elicitations have no ids in 2026-07-28
    }
    return false;
  }

  void tell(const Change& change) override {
    if (!writable_) {
      missed_.add(change);
      return;
    }
    std::string params = R"({"_meta":{)" + meta_ + "}";
    if (const std::string more = params_of(change); !more.empty()) params.append(",").append(more);
    writable_ = call_->notify(method_of(change), params + "}");
  }

  void close() override {
    if (self_ == nullptr) return;
    call_->set_producer(nullptr);
    call_->complete({}, meta_);
    on_cancel();
  }

  void on_writable() override {
    const std::shared_ptr<Listening> keep = self_;
    writable_ = true;
    while (writable_ && !missed_.empty()) tell(missed_.take());
    for (const auto& follower : followers_) {
      if (std::exchange(follower->missed, false)) follower->on_task_change();
    }
  }
  void on_cancel() override { const std::shared_ptr<Listening> released = std::move(self_); }

 private:
  /// One task whose changes the client is told of.
  struct Follower final : TaskObserver {
    Follower(Listening& to, std::shared_ptr<TaskRecord> of) : listening(&to), task(std::move(of)) {}
    void on_task_change() override { listening->tell_of(*this); }

    Listening* listening;  // the owner of this
    std::shared_ptr<TaskRecord> task;
    bool missed = false;
  };

  /// Sends the current state of the task. While the output is full, remembers to send the state
  /// that is current when it takes more.
  void tell_of(Follower& follower) {
    const std::shared_ptr<Listening> keep = self_;
    if (keep == nullptr) return;
    if (!writable_) {
      follower.missed = true;
      return;
    }
    std::string params = R"({"_meta":{)" + meta_ + "},";
    follower.task->append_details(params);
    writable_ = call_->notify("notifications/tasks", params + "}");
  }

  std::shared_ptr<PendingRequest> call_;
  std::string meta_;  // a member of `_meta`
  const SubscriptionFilter filter_;
  MemoryHold memory_;  // of the filter
  std::vector<std::shared_ptr<Follower>> followers_;
  std::shared_ptr<Listening> self_;
  MissedChanges missed_;  // while the output was full
  bool writable_ = true;
  std::shared_ptr<void> source_;  // of changes elsewhere; null: there is none
};

}  // namespace

Result<SubscriptionFilter> SubscriptionFilter::decode(const json::object& params) {
  const json::value* const given = params.if_contains("notifications");
  if (given == nullptr || !given->is_object()) {
    return fail(kInvalidParams, "Invalid params: notifications must be an object");
  }
  const json::object& asked = given->get_object();
  SubscriptionFilter filter;
  for (const auto& [key, member] : {std::pair("toolsListChanged", &filter.tools),
                                    std::pair("promptsListChanged", &filter.prompts),
                                    std::pair("resourcesListChanged", &filter.resources)}) {
    const Result<bool> flag = flag_at(asked, key);
    if (!flag) return std::unexpected(flag.error());
    *member = *flag;
  }
  Result<std::set<std::string, std::less<>>> uris = strings_at(asked, "resourceSubscriptions");
  if (!uris) return std::unexpected(uris.error());
  filter.uris = std::move(*uris);
  if (asked.contains("taskIds")) {
    Result<std::set<std::string, std::less<>>> ids = strings_at(asked, "taskIds");
    if (!ids) return std::unexpected(ids.error());
    filter.task_ids = std::move(*ids);
  }
  return filter;
}

std::size_t SubscriptionFilter::memory() const {
  std::size_t bytes = 0;
  for (const std::string& uri : uris) bytes += memory_of_subscription(uri);
  if (!task_ids) return bytes;
  for (const std::string& id : *task_ids) bytes += kPerTask + id.size();
  return bytes;
}

std::shared_ptr<ChangeListener> listen(const std::shared_ptr<PendingRequest>& call,
                                       const RequestId& id, SubscriptionFilter filter,
                                       MemoryHold memory,
                                       std::vector<std::shared_ptr<TaskRecord>> tasks,
                                       const ServerDefinition& definition,
                                       ChangeNotifier& changes) {
  if (!definition.announces_changes) filter = {.task_ids = std::move(filter.task_ids)};
  if (definition.forwarder != nullptr) {
    for (const std::string& uri : std::exchange(filter.uris, {})) {
      if (auto known = definition.forwarder->known_uri(uri)) filter.uris.insert(*std::move(known));
    }
  }
  const auto listening =
      std::make_shared<Listening>(call, id, std::move(filter), std::move(memory), std::move(tasks));
  // Added first, so that the client misses nothing that happens after the acknowledgement.
  changes.add(call->executor(), listening);
  listening->start();
  if (definition.forwarder != nullptr) listening->hear(*definition.forwarder);
  return listening;
}

}  // namespace sluice

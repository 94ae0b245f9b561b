#include "server/listen.hpp"

#include <utility>

#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

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

/// One subscription. Keeps itself until its client stops listening.
class Listening final : public ChangeListener,
                        public StreamProducer,
                        public std::enable_shared_from_this<Listening> {
 public:
  Listening(std::shared_ptr<PendingRequest> call, const RequestId& id, SubscriptionFilter filter)
      : call_(std::move(call)),
        meta_("\"" + std::string(kSubscriptionIdKey) + "\":" + id),
        filter_(std::move(filter)) {}

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
      params.append(R"("resourceSubscriptions":[)");
      for (const std::string& uri : filter_.uris) {
        if (params.back() != '[') params.push_back(',');
        append_json_string(params, uri);
      }
      params.push_back(']');
    }
    call_->notify("notifications/subscriptions/acknowledged", params + "}}");
    call_->flush();
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
        return filter_.uris.contains(change.uri);
    }
    return false;
  }

  void tell(const Change& change) override {
    // A client that does not keep up misses some of them rather than all that follow.
    if (!room_) return;
    std::string params = R"({"_meta":{)" + meta_ + "}";
    if (const std::string more = params_of(change); !more.empty()) params.append(",").append(more);
    room_ = call_->notify(method_of(change), params + "}");
  }

  void close() override {
    if (self_ == nullptr) return;
    call_->set_producer(nullptr);
    call_->complete({}, meta_);
    on_cancel();
  }

  void on_room() override { room_ = true; }
  void on_cancel() override { const std::shared_ptr<Listening> released = std::move(self_); }

 private:
  std::shared_ptr<PendingRequest> call_;
  std::string meta_;  // a member of `_meta`
  const SubscriptionFilter filter_;
  std::shared_ptr<Listening> self_;
  bool room_ = true;
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
  const json::value* const uris = asked.if_contains("resourceSubscriptions");
  if (uris == nullptr) return filter;
  if (!uris->is_array()) {
    return fail(kInvalidParams,
                "Invalid params: notifications.resourceSubscriptions must be an array");
  }
  if (uris->get_array().size() > Session::kMaxSubscriptions) {
    return fail(kInvalidParams,
                "Invalid params: notifications.resourceSubscriptions has more than " +
                    std::to_string(Session::kMaxSubscriptions) + " resources");
  }
  for (const json::value& uri : uris->get_array()) {
    if (!uri.is_string()) {
      return fail(kInvalidParams,
                  "Invalid params: notifications.resourceSubscriptions must hold strings");
    }
    filter.uris.emplace(uri.get_string());
  }
  return filter;
}

void listen(const std::shared_ptr<PendingRequest>& call, const RequestId& id,
            SubscriptionFilter filter, const ServerDefinition& definition, Changes& changes) {
  if (!definition.announces_changes) filter = {};
  const auto listening = std::make_shared<Listening>(call, id, std::move(filter));
  listening->start();
  changes.add(call->executor(), listening);
}

}  // namespace sluice

#include "client/session/change_watch.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "json/members.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {
namespace {

constexpr std::string_view kAcknowledged = "notifications/subscriptions/acknowledged";

}  // namespace

ChangeWatch::ChangeWatch(ClientSession& session, Executor& loop, WatchFilter filter,
                         RequestCallbacks callbacks)
    : SessionActivity(session, loop, {.idle_timeout = {}}, std::move(callbacks)),
      filter_(std::move(filter)),
      backoff_({.attempts = std::numeric_limits<std::uint32_t>::max()}) {}

void ChangeWatch::begin() {
  if (session().server().revision->era == Era::modern) return listen();
  subscribe();
  ping_later();
}

void ChangeWatch::listen() {
  json::object filter;
  if (filter_.tools) filter["toolsListChanged"] = true;
  if (filter_.prompts) filter["promptsListChanged"] = true;
  if (filter_.resources) filter["resourcesListChanged"] = true;
  if (!filter_.uris.empty()) {
    json::array& uris = filter["resourceSubscriptions"].emplace_array();
    for (const std::string& uri : filter_.uris) uris.emplace_back(uri);
  }
  json::object params{{"notifications", std::move(filter)}};
  if (!filter_.level.empty()) {
    params["_meta"] = {{"io.modelcontextprotocol/logLevel", filter_.level}};
  }
  listening_ = ask("subscriptions/listen", std::move(params), options(),
                   [this](Result<json::object> answer) {
                     listening_ = 0;
                     distrust();
                     if (answer || !is_passing(answer.error())) return end(std::move(answer));
                     later(*backoff_.next(), [this] { listen(); });
                   });
}

void ChangeWatch::distrust() {
  const auto drop = [this](std::string_view notification, const json::object& params = {}) {
    session().distrust(notification, params);
  };
  if (filter_.tools) drop("notifications/tools/list_changed");
  if (filter_.prompts) drop("notifications/prompts/list_changed");
  if (filter_.resources) drop("notifications/resources/list_changed");
  for (const std::string& uri : filter_.uris)
    drop("notifications/resources/updated", {{"uri", uri}});
}

void ChangeWatch::subscribe() {
  const auto send = [this](std::string method, json::object params) {
    const RequestOptions patient;
    ask(std::move(method), std::move(params), patient, [this](Result<json::object> answer) {
      if (answer) return;
      if (!is_passing(answer.error())) return end(std::move(answer));
      is_behind_ = true;
    });
  };
  for (const std::string& uri : filter_.uris) send("resources/subscribe", {{"uri", uri}});
  if (!filter_.level.empty()) send("logging/setLevel", {{"level", filter_.level}});
}

void ChangeWatch::ping_later() {
  later(kPingInterval, [this] {
    const RequestOptions patient;
    ask("ping", {}, patient, [this](const Result<json::object>& answer) {
      const int code = answer ? 0 : answer.error().code;
      if (code == kUnauthorized || code == kForbidden) return end(answer);
      if (answer && std::exchange(is_behind_, false)) subscribe();
      ping_later();
    });
  });
}

void ChangeWatch::leave() {
  if (session().server().revision->era == Era::modern) return;
  for (const std::string& uri : filter_.uris) {
    if (!session().activities().is_watched(uri, *this))
      tell("resources/unsubscribe", {{"uri", uri}});
  }
}

bool ChangeWatch::watches(std::string_view uri) const {
  return std::ranges::find(filter_.uris, uri) != filter_.uris.end();
}

bool ChangeWatch::wants(std::string_view method) const {
  // The URI of an update may be that of a part of the resource that was named (2025-11-25,
  // Resources, Subscriptions), so it is not compared.
  return (filter_.tools && method == "notifications/tools/list_changed") ||
         (filter_.prompts && method == "notifications/prompts/list_changed") ||
         (filter_.resources && method == "notifications/resources/list_changed") ||
         (!filter_.uris.empty() && method == "notifications/resources/updated") ||
         (!filter_.level.empty() && method == "notifications/message");
}

bool ChangeWatch::on_notification(std::string_view method, const json::object& params) {
  const bool is_modern = session().server().revision->era == Era::modern;
  const bool is_own = is_modern && is_subscription(listening_, params);
  // The log is not part of a subscription, though its stream carries it.
  if (!is_own && (!wants(method) || (is_modern && method != "notifications/message"))) return false;
  backoff_.reset();
  if (is_own && method == kAcknowledged) distrust();
  report({{"method", method}, {"params", json::object(params, json::storage_ptr())}});
  return is_own;
}

}  // namespace sluice

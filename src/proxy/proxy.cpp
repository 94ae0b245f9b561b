#include "proxy/proxy.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "core/recycling.hpp"
#include "core/text/text.hpp"
#include "core/version.hpp"
#include "json/members.hpp"
#include "protocol/negotiation.hpp"
#include "protocol/server_info.hpp"
#include "proxy/calls/forwarded_call.hpp"
#include "proxy/calls/gathering.hpp"
#include "proxy/translation/merging.hpp"
#include "proxy/translation/names.hpp"
#include "proxy/translation/translation.hpp"
#include "rpc/error_codes.hpp"
#include "server/sessions/session_storage.hpp"

namespace sluice {
namespace {

/// Methods of one era only.
constexpr std::array<std::string_view, 4> kLegacyMethods = {
    "initialize", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"};

bool has_method(const Revision& revision, std::string_view method) {
  if (method == "server/discover") return revision.era == Era::modern;
  return revision.era == Era::legacy ||
         std::ranges::find(kLegacyMethods, method) == kLegacyMethods.end();
}

/// What a session keeps.
struct SessionSlot {
  std::shared_ptr<ProxyClient> client;
};

/// What a connection keeps: the requests of one may come from several clients.
struct ConnectionSlot {
  std::vector<std::shared_ptr<ProxyClient>> clients;
};

template <typename Slot>
Slot& slot_in(SessionStorage& storage) {
  static const char kType = 0;
  return *std::static_pointer_cast<Slot>(
      storage.value(&kType, []() -> std::shared_ptr<void> { return std::make_shared<Slot>(); }));
}

/// Who all clients together are.
ClientIdentity shared_identity() {
  const json::object capabilities{
      {"elicitation", {{"form", json::object()}, {"url", json::object()}}},
      {"sampling", json::object()}};
  return identity_of(nullptr, &capabilities).value();
}

/// The proxy's own description.
const json::object& own_about() {
  static const json::object kAbout{
      {"serverInfo", {{"name", "sluice proxy"}, {"version", kVersion}}}};
  return kAbout;
}

/// What a client is told about the servers.
json::object description_for(const Revision& revision, const json::object& about,
                             const json::object& info_of) {
  json::object out;
  const json::object* const info = server_info_in(info_of);
  if (revision.era == Era::legacy) {
    out["protocolVersion"] = revision.name;
    out["serverInfo"] = info != nullptr ? *info : *server_info_in(own_about());
  } else {
    out["supportedVersions"] = parse_json(revisions_json()).value();
  }
  const json::object* const capabilities = object_at(about, "capabilities");
  out["capabilities"] = capabilities == nullptr ? json::object() : passed_on(*capabilities);
  if (const json::value* const text = about.if_contains("instructions"))
    out["instructions"] = *text;
  make_result_for(revision, "server/discover", info != nullptr ? info_of : own_about(), out);
  return out;
}

void answer(PendingRequest& call, json::object result) {
  make_result_for(*call.context().revision, {}, own_about(), result);
  call.answer_with_result(to_json(result));
}

std::unexpected<Error> unknown(std::string_view method, const json::object& params,
                               const Revision& revision) {
  if (method.starts_with("resources/")) {
    const std::string_view uri = text_at(params, "uri");
    return fail(revision.unknown_resource, "Resource not found: " + std::string(uri),
                to_json(json::object{{"uri", uri}}));
  }
  if (method == "tools/call" || method == "prompts/get") {
    return fail(kInvalidParams,
                std::string(method == "tools/call" ? "Unknown tool: " : "Unknown prompt: ") +
                    std::string(text_at(params, "name")));
  }
  if (method == "completion/complete") {
    return fail(kInvalidParams, "Invalid params: ref names nothing that is listed here");
  }
  return fail(kMethodNotFound, "Method not found: " + std::string(method));
}

}  // namespace

Proxy::Proxy(ProxyOptions options)
    : shares_principals_(options.shares_principals),
      has_one_session_(options.has_one_session),
      programs_(std::make_shared<ClientQuota>(options.programs_per_client)),
      idle_(std::move(options.idle)) {
  for (UpstreamOptions& each : options.upstreams) {
    upstreams_.push_back(std::make_shared<Upstream>(std::move(each), ending_));
  }
}

Proxy::~Proxy() = default;

// --- clients ------------------------------------------------------------------------------------

void Proxy::begin_on(Executor& loop) {
  if (loop_ != nullptr) return;
  loop_ = &loop;
  pool_ = std::make_shared<ClientPool>(
      loop, [this](const ClientIdentity& identity) { return make_client(identity); },
      shares_principals_);
  parked_.emplace(loop, pool_);
  if (!has_one_session_) return;
  shared_ = std::make_shared<SharedClient>(loop, make_client(shared_identity(), true), idle_);
}

std::shared_ptr<ProxyClient> Proxy::make_client(ClientIdentity identity, bool is_shared) {
  auto client = std::make_shared<ProxyClient>(*loop_, upstreams_, std::move(identity), is_shared);
  if (clients_.size() >= sweep_at_) {
    std::erase_if(clients_, [](const auto& each) { return each.expired(); });
    sweep_at_ = std::max<std::size_t>(64, 2 * clients_.size());
  }
  clients_.push_back(client);
  return client;
}

std::shared_ptr<ProxyClient> Proxy::new_client(ClientIdentity identity) {
  return has_one_session_ ? shared_->join() : make_client(std::move(identity));
}

Result<std::shared_ptr<ProxyClient>> Proxy::client_of(const std::shared_ptr<Session>& session,
                                                      const json::object& params,
                                                      PendingRequest& call) {
  auto client = uncharged_client_of(session, params, call);
  // What all clients share is nobody's.
  if (client && !has_one_session_)
    (*client)->charge_to({programs_, call.principal().id, call.memory()});
  return client;
}

Result<std::shared_ptr<ProxyClient>> Proxy::uncharged_client_of(
    const std::shared_ptr<Session>& session, const json::object& params, PendingRequest& call) {
  if (session != nullptr) {
    std::shared_ptr<ProxyClient>& client = slot_in<SessionSlot>(session->storage()).client;
    if (client == nullptr) client = new_client(identity_of(nullptr, nullptr).value());
    return client;
  }
  Result<ClientIdentity> identity = identities_.read(params);
  if (!identity) return std::unexpected(std::move(identity.error()));
  const auto& sender = call.context().sender;
  if (sender == nullptr || sender->storage == nullptr) {
    if (has_one_session_) return shared_->join();
    return pool_->take(call.principal(), *identity);
  }
  auto& clients = slot_in<ConnectionSlot>(*sender->storage).clients;
  const auto found = std::ranges::find_if(
      clients, [&](const auto& each) { return has_one_session_ || each->identity() == *identity; });
  if (found != clients.end()) return *found;
  if (clients.size() == kMaxClientsOfConnection) {
    return fail(kBusy, "The requests of this connection have named " +
                           std::to_string(kMaxClientsOfConnection) +
                           " clients or capabilities; open another connection for more");
  }
  return clients.emplace_back(new_client(*std::move(identity)));
}

void Proxy::open(Executor& loop, std::function<void(Result<json::object>)> done) {
  begin_on(loop);
  auto client = shared_->join();
  UpstreamSession& part = client->part(0);
  part.when_open([client = std::move(client), done = std::move(done)](const Result<void>& outcome) {
    if (!outcome) return done(std::unexpected(outcome.error()));
    done(json::object(client->part(0).server().about, json::storage_ptr()));
  });
}

void Proxy::close(std::function<void()> done) {
  is_closed_ = true;
  if (loop_ == nullptr) return done();
  parked_->clear();
  for (const auto& weak : std::exchange(clients_, {})) {
    if (const auto client = weak.lock()) client->close();
  }
  // Nothing of it may outlive the loop.
  pool_ = nullptr;
  shared_ = nullptr;
  // Also those of clients that have left before, such as the one of standard input.
  loop_->post(
      [ending = ending_, done = std::move(done)]() mutable { ending->when_none(std::move(done)); });
}

// --- requests -----------------------------------------------------------------------------------

Result<void> Proxy::forward(const ForwardedMessage& message,
                            const std::shared_ptr<PendingRequest>& call) {
  if (is_closed_) return fail(kBusy, "The proxy is shutting down");
  begin_on(call->executor());
  const Revision& revision = *call->context().revision;
  const std::string method(message.method);
  // The server in front has the tasks of its clients; those of the servers are nobody else's.
  if (!has_method(revision, method) || method.starts_with("tasks/")) {
    return fail(kMethodNotFound, "Method not found: " + method);
  }
  if (revision.era == Era::modern && message.params.contains("requestState")) {
    const auto parked = parked_->take(*call);
    if (!parked) return std::unexpected(parked.error());
    (*parked)->resume(call);
    return {};
  }
  if (method == "initialize" && message.session != nullptr) {
    Result<ClientIdentity> identity = identity_of(object_at(message.params, "clientInfo"),
                                                  object_at(message.params, "capabilities"));
    if (!identity) return std::unexpected(std::move(identity.error()));
    slot_in<SessionSlot>(message.session->storage()).client = new_client(*std::move(identity));
  }
  auto taken = client_of(message.session, message.params, *call);
  if (!taken) return std::unexpected(std::move(taken.error()));
  std::shared_ptr<ProxyClient> client = std::move(*taken);
  if (method == "initialize" || method == "server/discover") {
    describe(message, std::move(client), call);
    return {};
  }
  if (method == "logging/setLevel") return set_level(message, *client, *call);
  if (upstreams_.size() > 1 && !list_of(method).empty()) {
    return list(message, std::move(client), call);
  }
  json::object params = forwarded_params(message.params);
  const std::optional<std::size_t> index = route(method, params);
  if (!index) return unknown(method, message.params, revision);
  if (method == "tools/call" && message.headers != nullptr) {
    Result<void> agrees = upstreams_[*index]->check(params, *message.headers);
    if (!agrees) return agrees;
  }
  if (method == "resources/subscribe" || method == "resources/unsubscribe") {
    return subscribe(message, std::move(client), *index, std::move(params), call);
  }
  make_shared_recycled<ForwardedCall>(std::move(client), *index, method, *parked_)
      ->start(std::move(params), call, message.session);
  return {};
}

std::optional<std::size_t> Proxy::route(std::string_view method, json::object& params) const {
  const bool is_one = upstreams_.size() == 1;
  if (is_one && upstreams_.front()->options().prefix.empty()) return 0;
  if (is_one && !names_a_feature(method, params)) return 0;
  const std::string prefix = take_prefix(method, params);
  const bool is_name = method == "tools/call" || method == "prompts/get";
  for (std::size_t i = 0; i < upstreams_.size(); ++i) {
    const std::string& own = upstreams_[i]->options().prefix;
    const bool is_own = own == prefix || (!is_name && to_lower(own) == to_lower(prefix));
    if (!prefix.empty() && is_own) return i;
  }
  return std::nullopt;
}

void Proxy::describe(const ForwardedMessage& message, std::shared_ptr<ProxyClient> client,
                     const std::shared_ptr<PendingRequest>& call) {
  if (message.session != nullptr) client->serve(message.session, message.changes);
  const auto merge = [&revision = *call->context().revision, client,
                      lists = call->principal().isolated](const std::vector<PartAnswer>& answers) {
    json::object description =
        client->size() == 1
            ? description_for(revision, answers.front().answer, answers.front().answer)
            : description_for(revision, merge_descriptions(answers), own_about());
    if (client->makes_tasks()) {
      add_tasks(revision, lists, description["capabilities"].as_object());
    }
    return description;
  };
  std::make_shared<Gathering>(std::move(client), call, std::string(message.method), merge)
      ->describe();
}

Result<void> Proxy::list(const ForwardedMessage& message, std::shared_ptr<ProxyClient> client,
                         const std::shared_ptr<PendingRequest>& call) {
  std::optional<std::map<std::string, std::string>> cursors;
  if (const json::value* const cursor = message.params.if_contains("cursor")) {
    const auto is_known = [this](std::string_view prefix) {
      return std::ranges::any_of(
          upstreams_, [&](const auto& each) { return each->options().prefix == prefix; });
    };
    auto read =
        cursors_in(cursor->is_string() ? std::string_view(cursor->get_string()) : "", is_known);
    if (!read) return std::unexpected(std::move(read.error()));
    cursors = *std::move(read);
  }
  const std::string method(message.method);
  const auto params = [&](std::size_t index) -> std::optional<json::object> {
    json::object own = forwarded_params(message.params);
    if (!cursors) return own;
    const auto found = cursors->find(upstreams_[index]->options().prefix);
    if (found == cursors->end()) return std::nullopt;
    own["cursor"] = found->second;
    return own;
  };
  const auto merge = [method,
                      &revision = *call->context().revision](std::vector<PartAnswer> pages) {
    json::object page = merge_pages(method, std::move(pages));
    make_result_for(revision, method, own_about(), page);
    return page;
  };
  std::make_shared<Gathering>(std::move(client), call, method, merge)->list(params);
  return {};
}

Result<void> Proxy::set_level(const ForwardedMessage& message, ProxyClient& client,
                              PendingRequest& call) {
  const auto level = parse_logging_level(text_at(message.params, "level"));
  if (!level) return fail(kInvalidParams, "Invalid params: level is not a level of log messages");
  if (message.session != nullptr) message.session->set_logging_level(*level);
  for (std::size_t i = 0; i < client.size(); ++i) client.set_level(i, *level);
  answer(call, {});
  return {};
}

Result<void> Proxy::subscribe(const ForwardedMessage& message, std::shared_ptr<ProxyClient> client,
                              std::size_t index, json::object params,
                              const std::shared_ptr<PendingRequest>& call) {
  if (message.session == nullptr) {
    return fail(kInvalidRequest,
                "Invalid Request: subscriptions need a session, and this request has none");
  }
  const std::string uri(text_at(params, "uri"));
  // As changes name it, however the client writes the prefix.
  const std::string shown = prefixed_uri(upstreams_[index]->options().prefix, uri);
  if (uri.empty()) return fail(kInvalidParams, "Invalid params: uri must be a string");
  if (message.method == "resources/unsubscribe") {
    message.session->unsubscribe(shown);
    client->want();
    answer(*call, {});
    return {};
  }
  const bool is_new = !message.session->subscribed(shown);
  if (Result<void> kept = message.session->subscribe(shown, call->memory()); !kept) return kept;
  UpstreamSession& part = client->part(index);
  part.when_open([client = std::move(client), index, uri, shown, is_new, params = std::move(params),
                  call, session = message.session,
                  &parked = *parked_](const Result<void>& outcome) {
    if (call->over()) return;
    if (!outcome) {
      if (is_new) session->unsubscribe(shown);
      return call->fail(outcome.error());
    }
    const bool is_legacy = client->part(index).server().revision->era == Era::legacy;
    if (is_legacy) client->part(index).feed().adopt(uri);
    client->want();
    if (!is_legacy) return answer(*call, {});
    // The server says whether there is such a resource.
    const auto asking =
        std::make_shared<ForwardedCall>(client, index, "resources/subscribe", parked);
    asking->on_failure([client, index, uri, shown, is_new, weak = std::weak_ptr(session)] {
      if (!is_new) return;
      client->part(index).feed().disown(uri);
      if (const auto still = weak.lock()) still->unsubscribe(shown);
      client->want();
    });
    asking->start(params, call, session);
  });
  return {};
}

Result<std::shared_ptr<void>> Proxy::listen(const SubscriptionFilter& filter,
                                            const std::shared_ptr<PendingRequest>& call,
                                            std::weak_ptr<ChangeListener> listener) {
  const bool hears = filter.tools || filter.prompts || filter.resources || !filter.uris.empty();
  if (is_closed_ || !hears || call->params() == nullptr) return nullptr;
  begin_on(call->executor());
  auto client = client_of(nullptr, *call->params(), *call);
  if (!client) return std::unexpected(std::move(client.error()));
  // The client is lent as long as it hears of changes.
  struct Source {
    std::shared_ptr<ProxyClient> client;
    std::shared_ptr<void> listening;
  };
  std::shared_ptr<void> listening = (*client)->listen(filter, std::move(listener));
  return std::make_shared<Source>(*std::move(client), std::move(listening));
}

std::optional<std::string> Proxy::known_uri(const std::string& uri) const {
  json::object params{{"uri", uri}};
  const auto index = route("resources/subscribe", params);
  if (!index) return std::nullopt;
  return prefixed_uri(upstreams_[*index]->options().prefix, text_at(params, "uri"));
}

void Proxy::notify(const ForwardedMessage& message) {
  // Each session with a server begins by itself, and cancels and reports progress by itself.
  static constexpr std::array<std::string_view, 2> kOwn = {"notifications/initialized",
                                                           "notifications/progress"};
  const bool is_own = std::ranges::find(kOwn, message.method) != kOwn.end();
  const auto client = slot_in<SessionSlot>(message.session->storage()).client;
  if (client == nullptr || is_own) return;
  for (std::size_t i = 0; i < client->size(); ++i) {
    UpstreamSession& part = client->part(i);
    if (part.is_open() && part.server().revision->era == Era::legacy) {
      part.notify(message.method, message.params, message.memory);
    }
  }
}

}  // namespace sluice

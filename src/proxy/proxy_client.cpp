#include "proxy/proxy_client.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "json/json.hpp"
#include "proxy/names.hpp"
#include "proxy/translation.hpp"

namespace sluice {
namespace {

constexpr auto kKindsOfLists = {Change::Kind::tools, Change::Kind::prompts,
                                Change::Kind::resources};

}  // namespace

/// What one server says, and the client's session with it.
struct ProxyClient::Part final : UpstreamListener {
  Part(ProxyClient& owner, const std::shared_ptr<Upstream>& upstream)
      : client(&owner),
        prefix(upstream->options().prefix),
        session(std::make_shared<UpstreamSession>(*owner.loop_, upstream, owner.identity_, *this)) {
  }

  /// This server's own URI of what the client knows as `uri`; nothing if it is another server's.
  [[nodiscard]] std::optional<std::string> own_uri(const std::string& uri) const {
    if (prefix.empty()) return uri;
    auto own = split_prefixed_uri(uri);
    if (!own || own->prefix != prefix) return std::nullopt;
    return std::move(own->name);
  }
  void on_change(const Change& change) override {
    Change told = change;
    if (change.kind == Change::Kind::resource) told.subject = prefixed_uri(prefix, change.subject);
    client->tell(told);
  }
  void on_notification(std::string_view method, const json::object& params) override {
    client->say({},
                to_json(json::object{{"jsonrpc", "2.0"}, {"method", method}, {"params", params}}));
  }
  bool on_question(ServerQuestion& question) override {
    const auto to = client->session_.lock();
    // Over HTTP without an open stream, a request would reach nobody.
    if (to == nullptr || (!to->id().empty() && !to->standalone_stream())) return false;
    auto answer =
        std::make_shared<UniqueFunction<void(Result<json::object>)>>(std::move(question.answer));
    const Result<RequestId> id = to->expect_response(
        *client->loop_,
        [answer, number = question.number, alive = std::weak_ptr(asked)](Result<json::value> said) {
          if (const auto still = alive.lock()) still->erase(number);
          if (!said) return (*answer)(std::unexpected(std::move(said.error())));
          if (!said->is_object()) return (*answer)(json::object());
          (*answer)(json::object(said->get_object(), json::storage_ptr()));
        });
    if (!id) {
      (*answer)(std::unexpected(id.error()));
      return true;
    }
    asked->emplace(question.number, *id);
    std::string message = R"({"jsonrpc":"2.0","id":)" + *id + R"(,"method":)";
    append_json_string(message, question.method);
    message.append(R"(,"params":)").append(to_json(question.params)).append("}");
    client->say({}, std::move(message));
    return true;
  }
  void on_withdrawn(std::uint64_t question) override {
    const auto found = asked->find(question);
    if (found == asked->end()) return;
    const RequestId id = std::move(found->second);
    asked->erase(found);
    const auto from = client->session_.lock();
    if (from == nullptr) return;
    from->forget_response(id);
    client->say(
        {}, R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":)" + id +
                "}}");
  }
  void on_listening(bool is_late) override { client->catch_up(*this, is_late); }
  void on_renewed() override { client->lists_changed(); }

  ProxyClient* client;
  std::string prefix;
  ChangeFeed::Uris subscribed = {};  // by the client of the session
  /// The ids of the questions that the client was asked outside of calls.
  std::shared_ptr<std::map<std::uint64_t, RequestId>> asked =
      std::make_shared<std::map<std::uint64_t, RequestId>>();
  std::shared_ptr<UpstreamSession> session;
};

ProxyClient::ProxyClient(Executor& loop, const std::vector<std::shared_ptr<Upstream>>& upstreams,
                         ClientIdentity identity)
    : loop_(&loop),
      identity_{std::move(identity.info),
                json::object(identity.capabilities, json::storage_ptr())} {
  for (const auto& upstream : upstreams) parts_.push_back(std::make_unique<Part>(*this, upstream));
}

ProxyClient::~ProxyClient() = default;

UpstreamSession& ProxyClient::part(std::size_t index) const {
  return *parts_[index]->session;
}

bool ProxyClient::has_state() const {
  return std::ranges::any_of(parts_, [](const auto& part) { return part->session->has_state(); });
}

bool ProxyClient::makes_tasks() const {
  return std::ranges::any_of(parts_, [](const auto& part) {
    return part->session->is_open() && sluice::makes_tasks(part->session->server());
  });
}

void ProxyClient::serve(const std::shared_ptr<Session>& session, ChangeNotifier& changes) {
  session_ = session;
  changes_ = &changes;
  want();
}

void ProxyClient::subscribe(std::size_t index, const std::string& uri) {
  parts_[index]->subscribed.insert(uri);
  want();
}

void ProxyClient::unsubscribe(std::size_t index, const std::string& uri) {
  parts_[index]->subscribed.erase(uri);
  want();
}

std::shared_ptr<void> ProxyClient::listen(const SubscriptionFilter& filter,
                                          std::weak_ptr<ChangeListener> listener) {
  const std::uint64_t number = ++last_listening_;
  listening_.emplace(number, Listening{filter, std::move(listener)});
  want();
  // Keeps this alive, and with it the sessions that tell of changes.
  return {nullptr, [self = shared_from_this(), number](void*) {
            self->listening_.erase(number);
            self->want();
          }};
}

/// Lets each server tell of what somebody wants to hear.
void ProxyClient::want() {
  if (is_closed_) return;
  for (const auto& part : parts_) {
    bool lists = !session_.expired();
    ChangeFeed::Uris uris = part->subscribed;
    for (const auto& [number, each] : listening_) {
      lists = lists || each.filter.tools || each.filter.prompts || each.filter.resources;
      for (const std::string& uri : each.filter.uris) {
        if (auto own = part->own_uri(uri)) uris.insert(*std::move(own));
      }
    }
    part->session->feed().want(lists, std::move(uris));
    const bool is_needed = !listening_.empty() && !part->session->is_open();
    if (is_needed) part->session->when_open([](const Result<void>&) {});
  }
}

void ProxyClient::tell(const Change& change) {
  tell_session(change);
  for (const auto& [number, each] : std::map(listening_)) {
    const auto listener = each.listener.lock();
    if (listener != nullptr && listener->wants(change)) listener->tell(change);
  }
}

void ProxyClient::lists_changed() {
  for (const auto kind : kKindsOfLists) tell({.kind = kind});
}

void ProxyClient::catch_up(const Part& part, bool is_late) {
  if (is_late) {
    for (const auto kind : kKindsOfLists) tell_session({.kind = kind});
    for (const std::string& uri : part.subscribed) {
      tell_session({.kind = Change::Kind::resource, .subject = prefixed_uri(part.prefix, uri)});
    }
  }
  for (const auto& [number, each] : std::map(listening_)) {
    const auto listener = each.listener.lock();
    if (listener == nullptr) continue;
    const auto tell_it = [&listener](const Change& change) {
      if (listener->wants(change)) listener->tell(change);
    };
    for (const auto kind : kKindsOfLists) tell_it({.kind = kind});
    for (const std::string& uri : each.filter.uris) {
      if (part.own_uri(uri)) tell_it({.kind = Change::Kind::resource, .subject = uri});
    }
  }
}

void ProxyClient::tell_session(const Change& change) {
  const auto session = session_.lock();
  if (session != nullptr && session->wants(change)) {
    say(std::string(method_of(change)) + change.subject, message_of(change));
  }
}

void ProxyClient::say(const std::string& state_of, std::string message) {
  const auto session = session_.lock();
  if (session == nullptr || changes_ == nullptr) return;
  changes_->send(session, state_of, std::make_shared<const std::string>(std::move(message)));
}

void ProxyClient::refuse_questions() {
  for (const auto& part : parts_) part->session->refuse_questions();
}

void ProxyClient::close(const std::function<void()>& done) {
  is_closed_ = true;
  const auto left = std::make_shared<std::size_t>(parts_.size());
  for (const auto& part : parts_) {
    part->session->close([left, done] {
      if (--*left == 0) done();
    });
  }
}

}  // namespace sluice

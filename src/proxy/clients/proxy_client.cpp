#include "proxy/clients/proxy_client.hpp"

#include <algorithm>
#include <optional>
#include <ranges>
#include <set>
#include <utility>

#include "core/text/text.hpp"
#include "json/json.hpp"
#include "json/members.hpp"
#include "protocol/client_capabilities.hpp"
#include "proxy/translation/names.hpp"
#include "proxy/translation/translation.hpp"
#include "rpc/error_codes.hpp"
#include "server/calls/session_questions.hpp"

namespace sluice {
namespace {

constexpr auto kKindsOfLists = {Change::Kind::tools, Change::Kind::prompts,
                                Change::Kind::resources};

}  // namespace

/// What one server says, and the session with it.
struct ProxyClient::Part final : UpstreamListener {
  using Answer = UniqueFunction<void(Result<json::object>)>;
  /// What a client was asked.
  struct Asked {
    std::weak_ptr<Session> session;
    std::shared_ptr<Answer> answer;
    std::shared_ptr<SessionQuestions> question;
  };
  /// Asks outside of calls.
  class Asker final : public SessionAsker {
   public:
    Asker(Part& part, std::weak_ptr<Session> session, std::uint64_t number)
        : part_(&part), session_(std::move(session)), number_(number) {}
    void send(std::string_view message) override {
      if (const auto to = session_.lock()) part_->client->say(to, {}, std::string(message));
    }
    void forget(const SessionQuestions& /*questions*/) override { part_->asked.erase(number_); }

   private:
    Part* part_;
    std::weak_ptr<Session> session_;
    std::uint64_t number_;
  };

  Part(ProxyClient& owner, const std::shared_ptr<Upstream>& upstream)
      : client(&owner),
        prefix(upstream->options().prefix),
        session(std::make_shared<UpstreamSession>(*owner.loop_, upstream, owner.identity_, *this,
                                                  owner.is_shared_)) {}

  /// This server's own URI of what the client knows as `uri`; nothing if it is another server's.
  [[nodiscard]] std::optional<std::string> own_uri(const std::string& uri) const {
    if (prefix.empty()) return uri;
    auto own = split_prefixed_uri(uri);
    if (!own || to_lower(own->prefix) != to_lower(prefix)) return std::nullopt;
    return std::move(own->name);
  }
  void on_change(const Change& change) override {
    Change told = change;
    if (change.kind == Change::Kind::resource) told.subject = prefixed_uri(prefix, change.subject);
    client->tell(told);
  }
  void on_notification(std::string_view method, const json::object& params) override {
    const auto level = method == "notifications/message"
                           ? parse_logging_level(text_at(params, "level"))
                           : std::nullopt;
    const std::string text =
        to_json(json::object{{"jsonrpc", "2.0"}, {"method", method}, {"params", params}});
    for (const auto& to : client->sessions()) {
      if (!level || *level >= to->logging_level()) client->say(to, {}, text);
    }
  }
  /// The client that is asked outside of calls: the newest that can be. Null: there is none.
  [[nodiscard]] std::shared_ptr<Session> asked_session(const ServerQuestion& question) const {
    for (const auto& each : client->sessions() | std::views::reverse) {
      // Over HTTP without an open stream, a request would reach nobody.
      const bool is_reached = each->id().empty() || each->standalone_stream();
      const auto& declared = each->capabilities();
      if (is_reached && missing_capabilities(declared, question.method, question.params).empty()) {
        return each;
      }
    }
    return nullptr;
  }
  bool on_question(ServerQuestion& question) override {
    const auto to = asked_session(question);
    if (to == nullptr) return false;
    const std::uint64_t number = question.number;
    auto answer = std::make_shared<Answer>(std::move(question.answer));
    json::object params = question_for(to->revision(), question.method, std::move(question.params));
    auto asking = std::make_shared<SessionQuestions>(
        std::make_unique<Asker>(*this, to, number), *client->loop_, to,
        std::vector<InputRequest>{
            {.key = {}, .method = std::move(question.method), .params = std::move(params)}},
        [answer](Result<std::vector<json::value>> said) {
          if (!said) return (*answer)(std::unexpected(std::move(said.error())));
          (*answer)(json::object(said->front().as_object(), json::storage_ptr()));
        });
    asked.emplace(number, Asked{to, answer, asking});
    if (const Result<void> sent = asking->send(); !sent) {
      asked.erase(number);
      (*answer)(std::unexpected(sent.error()));
    }
    return true;
  }
  void on_withdrawn(std::uint64_t question) override {
    const auto found = asked.find(question);
    if (found != asked.end()) found->second.question->withdraw();
  }
  void forget_asked() {
    std::vector<std::shared_ptr<Answer>> unanswered;
    std::erase_if(asked, [&unanswered](const auto& each) {
      if (!each.second.session.expired()) return false;
      unanswered.push_back(each.second.answer);
      return true;
    });
    for (const auto& answer : unanswered) {
      (*answer)(fail(kInvalidRequest, "The client that was asked has gone"));
    }
  }
  void on_listening(const ChangeFeed::Unheard& missed) override { client->catch_up(*this, missed); }
  void on_renewed() override {
    ChangeFeed::Unheard all = session->feed().wanted();
    all.lists = true;
    client->catch_up(*this, all);
  }

  void on_replaced() override {
    const std::shared_ptr<UpstreamSession> old = std::move(session);
    session = std::make_shared<UpstreamSession>(*this, *old);
    old->retire();
    std::erase_if(retired, [](const auto& each) { return each.expired(); });
    retired.push_back(old);
    for (const auto& [number, each] : std::exchange(asked, {})) {
      each.question->withdraw();
      (*each.answer)(fail(kInvalidRequest, "The client has another session by now"));
    }
    client->want();
    // Clients that only wait for changes hear of them again.
    session->when_open([](const Result<void>&) {});
  }

  ProxyClient* client;
  std::string prefix;
  /// The questions that clients were asked outside of calls, by their numbers.
  std::map<std::uint64_t, Asked> asked;
  std::shared_ptr<UpstreamSession> session;
  /// Those that were replaced. Their calls own them.
  std::vector<std::weak_ptr<UpstreamSession>> retired;
};

ProxyClient::ProxyClient(Executor& loop, const std::vector<std::shared_ptr<Upstream>>& upstreams,
                         ClientIdentity identity, bool is_shared)
    : loop_(&loop), identity_(std::move(identity)), is_shared_(is_shared) {
  for (const auto& upstream : upstreams) parts_.push_back(std::make_unique<Part>(*this, upstream));
}

ProxyClient::~ProxyClient() = default;

UpstreamSession& ProxyClient::part(std::size_t index) const {
  return *parts_[index]->session;
}

const std::shared_ptr<UpstreamSession>& ProxyClient::shared_part(std::size_t index) const {
  return parts_[index]->session;
}

void ProxyClient::charge_to(const UpstreamSession::Payer& payer) {
  for (const auto& part : parts_) part->session->charge_to(payer);
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
  std::erase_if(sessions_, [](const auto& each) { return each.expired(); });
  sessions_.push_back(session);
  changes_ = &changes;
  want();
}

std::vector<std::shared_ptr<Session>> ProxyClient::sessions() const {
  std::vector<std::shared_ptr<Session>> out;
  for (const auto& each : sessions_) {
    if (auto session = each.lock()) out.push_back(std::move(session));
  }
  return out;
}

void ProxyClient::set_level(std::size_t index, LoggingLevel level) {
  UpstreamSession& session = part(index);
  if (is_shared_) level = std::min(level, session.level().value_or(level));
  session.set_level(level);
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

void ProxyClient::want() {
  if (is_closed_) return;
  const auto sessions = this->sessions();
  for (const auto& part : parts_) {
    bool lists = !sessions.empty();
    Uris uris;
    const auto add = [&](const std::string& uri) {
      if (auto own = part->own_uri(uri)) uris.insert(*std::move(own));
    };
    for (const auto& session : sessions) std::ranges::for_each(session->subscriptions(), add);
    for (const auto& [number, each] : listening_) {
      lists = lists || each.filter.tools || each.filter.prompts || each.filter.resources;
      std::ranges::for_each(each.filter.uris, add);
    }
    part->session->want(lists, std::move(uris), !listening_.empty());
  }
}

void ProxyClient::tell(const Change& change) {
  tell_sessions(change);
  for (const auto& [number, each] : std::map(listening_)) {
    const auto listener = each.listener.lock();
    if (listener != nullptr && listener->wants(change)) listener->tell(change);
  }
}

void ProxyClient::catch_up(const Part& part, const ChangeFeed::Unheard& missed) {
  if (missed.lists) {
    for (const auto kind : kKindsOfLists) tell_sessions({.kind = kind});
  }
  for (const std::string& uri : missed.uris) {
    tell_sessions({.kind = Change::Kind::resource, .subject = prefixed_uri(part.prefix, uri)});
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

void ProxyClient::tell_sessions(const Change& change) {
  for (const auto& session : sessions()) {
    if (!session->wants(change)) continue;
    say(session, std::string(method_of(change)) + change.subject, message_of(change));
  }
}

void ProxyClient::say(const std::shared_ptr<Session>& session, const std::string& state_of,
                      std::string message) {
  changes_->send(session, state_of, std::make_shared<const std::string>(std::move(message)));
}

void ProxyClient::refuse_questions() {
  for (const auto& part : parts_) part->session->refuse_questions();
}

void ProxyClient::forget_asked() {
  for (const auto& part : parts_) part->forget_asked();
}

void ProxyClient::close() {
  is_closed_ = true;
  for (const auto& part : parts_) {
    for (const auto& each : part->retired) {
      if (const auto session = each.lock()) session->close();
    }
    part->session->close();
  }
}

}  // namespace sluice

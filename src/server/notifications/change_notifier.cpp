#include "server/notifications/change_notifier.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>

#include "json/json.hpp"

namespace sluice {

std::string_view method_of(const Change& change) {
  switch (change.kind) {
    case Change::Kind::tools:
      return "notifications/tools/list_changed";
    case Change::Kind::prompts:
      return "notifications/prompts/list_changed";
    case Change::Kind::resources:
      return "notifications/resources/list_changed";
    case Change::Kind::elicitation:
      return "notifications/elicitation/complete";
    case Change::Kind::resource:
      break;
  }
  return "notifications/resources/updated";
}

std::string params_of(const Change& change) {
  std::string out;
  if (change.kind == Change::Kind::resource) {
    out = R"("uri":)";
  } else if (change.kind == Change::Kind::elicitation) {
    out = R"("elicitationId":)";
  } else {
    return out;
  }
  append_json_string(out, change.subject);
  return out;
}

std::string message_of(const Change& change) {
  std::string message = R"({"jsonrpc":"2.0","method":")" + std::string(method_of(change)) + "\"";
  if (const std::string params = params_of(change); !params.empty()) {
    message.append(R"(,"params":{)").append(params).append("}");
  }
  message.push_back('}');
  return message;
}

Change MissedChanges::take() {
  auto next = changes_.upper_bound(last_);
  if (next == changes_.end()) next = changes_.begin();
  last_ = std::move(changes_.extract(next).value());
  return {.kind = last_.first, .subject = last_.second};
}

bool wants(const Session& session, const Change& change) {
  switch (change.kind) {
    case Change::Kind::resource:
      return session.subscribed(change.subject);
    case Change::Kind::elicitation:
      return session.asked_to_open(change.subject);
    default:
      return true;
  }
}

/// Thread-safe.
class ChangeNotifier::Loop {
 public:
  Loop(const ChangeNotifier& all, StreamShard shard) : all_(&all), shard_(shard) {}

  [[nodiscard]] bool runs_on(const Executor& loop) const { return shard_.executor == &loop; }

  void add(std::weak_ptr<ChangeListener> listener) {
    const std::lock_guard lock(mutex_);
    if (listeners_.size() >= sweep_at_) {
      std::erase_if(listeners_, [](const auto& each) { return each.expired(); });
      sweep_at_ = std::max<std::size_t>(64, 2 * listeners_.size());
    }
    listeners_.push_back(std::move(listener));
  }

  /// Sends `change` in a later task, if a listener wants it.
  void tell_listeners(const Change& change) {
    const std::lock_guard lock(mutex_);
    const auto wants = [&](const std::weak_ptr<ChangeListener>& each) {
      const auto listener = each.lock();
      return listener != nullptr && listener->wants(change);
    };
    if (std::ranges::any_of(listeners_, wants)) tell_later(change);
  }

  /// Sends `change` in a later task, to whoever wants it by then.
  void tell(const Change& change) {
    const std::lock_guard lock(mutex_);
    tell_later(change);
  }

  /// Runs `work` on this loop with the standalone stream of `session`, which belongs to this loop.
  void with_stream_of(const std::shared_ptr<Session>& session,
                      std::move_only_function<void(ChunkStream&)> work) {
    shard_.executor->post([this, session, work = std::move(work)]() mutable {
      if (const auto stream = stream_of(*session)) work(*stream);
    });
  }

  void close() {
    shard_.executor->post([this] {
      while (tell_one()) {
      }
      for (const auto& each : listeners()) {
        if (const auto listener = each.lock()) listener->close();
      }
    });
  }

 private:
  [[nodiscard]] std::vector<std::weak_ptr<ChangeListener>> listeners() {
    const std::lock_guard lock(mutex_);
    return listeners_;
  }

  // With the mutex locked.
  void tell_later(const Change& change) {
    untold_.add(change);
    post();
  }
  void post() {
    if (is_posted_ || untold_.empty()) return;
    shard_.executor->post([this] {
      {
        const std::lock_guard lock(mutex_);
        is_posted_ = false;
      }
      tell_one();
    });
    is_posted_ = true;
  }

  // On the loop.

  /// Sends one change. The next one gets a task of its own, because there may be many receivers.
  /// Returns false if there is none.
  bool tell_one() {
    Change change;
    {
      const std::lock_guard lock(mutex_);
      if (untold_.empty()) return false;
      change = untold_.take();
      post();
    }
    for (const auto& each : listeners()) {
      const auto listener = each.lock();
      if (listener != nullptr && listener->wants(change)) listener->tell(change);
    }
    const std::string message = message_of(change);
    for (const std::shared_ptr<Session>& session : all_->sessions_->sessions()) {
      if (all_->loop_of(*session) != this || !wants(*session, change)) continue;
      if (const auto stream = stream_of(*session)) stream->offer(ChunkKind::message, message);
    }
    return true;
  }

  std::shared_ptr<ChunkStream> stream_of(const Session& session) {
    const std::optional<StreamId> id = session.standalone_stream();
    if (!id) return nullptr;
    const auto stream = shard_.streams->find(*id, session.stream_principal());
    return stream ? *stream : nullptr;
  }

  const ChangeNotifier* all_;
  StreamShard shard_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<ChangeListener>> listeners_;
  std::size_t sweep_at_ = 64;  // the number of listeners at which expired ones are dropped
  MissedChanges untold_;       // what this loop has not sent yet
  bool is_posted_ = false;     // whether there is a task to send the next of them
};

ChangeNotifier::ChangeNotifier(SessionRegistry& sessions, const std::vector<StreamShard>& shards)
    : sessions_(&sessions) {
  for (const StreamShard& shard : shards) loops_.push_back(std::make_unique<Loop>(*this, shard));
}

ChangeNotifier::~ChangeNotifier() = default;

void ChangeNotifier::add(Executor& loop, std::weak_ptr<ChangeListener> listener) {
  const auto runs_there = [&](const auto& each) { return each->runs_on(loop); };
  (*std::ranges::find_if(loops_, runs_there))->add(std::move(listener));
}

void ChangeNotifier::publish(const Change& change) {
  for (const auto& loop : loops_) loop->tell_listeners(change);
  for (const std::shared_ptr<Session>& session : sessions_->sessions()) {
    if (!wants(*session, change)) continue;
    if (Loop* const loop = loop_of(*session)) loop->tell(change);
  }
}

void ChangeNotifier::send(const std::shared_ptr<Session>& session, const std::string& state_of,
                          const std::shared_ptr<const std::string>& message) {
  if (session->send(state_of, message)) return;
  Loop* const loop = loop_of(*session);
  if (loop == nullptr) return;
  loop->with_stream_of(
      session, [message](ChunkStream& stream) { stream.offer(ChunkKind::message, *message); });
}

void ChangeNotifier::close() {
  for (const auto& loop : loops_) loop->close();
  for (const std::shared_ptr<Session>& session : sessions_->sessions()) {
    Loop* const loop = loop_of(*session);
    if (loop == nullptr) continue;
    loop->with_stream_of(session, [](ChunkStream& stream) {
      const bool is_read = stream.has_readers();
      stream.finish();
      // A shutdown waits until ended streams have been read. Nobody will come to read this one.
      if (!is_read) stream.note_delivered();
    });
  }
}

ChangeNotifier::Loop* ChangeNotifier::loop_of(const Session& session) const {
  const std::optional<StreamId> id = session.standalone_stream();
  if (!id) return nullptr;
  return loops_[StreamManager::loop_of(*id, loops_.size())].get();
}

}  // namespace sluice

#include "server/notifications/change_notifier.hpp"

#include <algorithm>
#include <cstddef>
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

namespace {

/// The memory of a message that is kept.
std::size_t memory_of(const std::string& state_of, const std::string& message) {
  constexpr std::size_t kPerState = 128;
  return kPerState + state_of.size() + message.size();
}

}  // namespace

void MissedMessages::add(const std::string& state_of, const std::string& message) {
  if (const auto before = states_.find(state_of); before != states_.end()) {
    memory_.remove(memory_of(state_of, before->second));
    states_.erase(before);
  }
  if (memory_.add(memory_of(state_of, message))) states_.emplace(state_of, message);
}

bool MissedMessages::send(Session& session,
                          const std::function<bool(const std::string& message)>& send) {
  while (const std::optional<Change> change = session.take_missed()) {
    if (send(message_of(*change))) continue;
    session.miss(*change);
    return false;
  }
  while (!states_.empty()) {
    const auto next = states_.extract(states_.begin());
    // What takes the message charges it to the same client.
    memory_.remove(memory_of(next.key(), next.mapped()));
    if (send(next.mapped())) continue;
    add(next.key(), next.mapped());
    return false;
  }
  return true;
}

/// Writes the standalone stream of a session, as a listener and for messages of no request. While
/// the stream is full or has no memory, keeps what the client must hear of, and sends that when
/// there is room again. Belongs to the loop of the stream.
class StandaloneStream final : public ChangeListener,
                               public std::enable_shared_from_this<StandaloneStream>,
                               private StreamProducer {
 public:
  StandaloneStream(std::weak_ptr<Session> session, std::weak_ptr<ChunkStream> stream)
      : session_(std::move(session)), stream_(std::move(stream)) {}

  [[nodiscard]] bool wants(const Change& change) const override {
    const auto session = session_.lock();
    return session != nullptr && session->wants(change);
  }
  void tell(const Change& change) override {
    const auto session = session_.lock();
    const auto stream = stream_.lock();
    if (session == nullptr || stream == nullptr || stream->ended()) return;
    if (send(*session, *stream, message_of(change))) return;
    session->miss(change);
    be_told_of_room(*stream);
  }
  /// `state_of` is as for Session::Outlet.
  void say(const std::string& state_of, const std::string& message) {
    const auto session = session_.lock();
    const auto stream = stream_.lock();
    if (session == nullptr || stream == nullptr || stream->ended()) return;
    if (send(*session, *stream, message) || state_of.empty()) return;
    be_told_of_room(*stream).add(state_of, message);
  }
  void close() override {
    const auto stream = stream_.lock();
    if (stream == nullptr) return;
    const std::shared_ptr<Missed> dropped = std::move(missed_);
    const bool is_read = stream->has_readers();
    stream->finish();
    // A shutdown waits until ended streams have been read. Nobody will come to read this one.
    if (!is_read) stream->note_delivered();
  }

 private:
  /// What came while the stream was full.
  struct Missed {
    MissedMessages messages;
    std::shared_ptr<StandaloneStream> owner;  // which is the producer of the stream meanwhile
  };
  MissedMessages& be_told_of_room(ChunkStream& stream) {
    if (missed_ == nullptr) {
      missed_ = std::make_shared<Missed>(MissedMessages(MemoryHold(stream.memory_share())),
                                         shared_from_this());
      stream.set_producer(this);
    }
    return missed_->messages;
  }
  /// Returns false if there is no room.
  bool send(Session& session, ChunkStream& stream, std::string_view message) {
    return send_missed(session, stream) && stream.offer(ChunkKind::message, message);
  }
  bool send_missed(Session& session, ChunkStream& stream) {
    const std::shared_ptr<Missed> now = missed_;  // sending may end the stream
    if (now == nullptr) return true;
    const bool all_sent = now->messages.send(session, [&stream](const std::string& message) {
      return stream.offer(ChunkKind::message, message);
    });
    if (!all_sent || missed_ != now) return false;
    stream.set_producer(nullptr);
    missed_ = nullptr;
    return true;
  }

  void on_writable() override {
    const auto keep = shared_from_this();
    const auto session = session_.lock();
    const auto stream = stream_.lock();
    if (session != nullptr && stream != nullptr) send_missed(*session, *stream);
  }
  void on_cancel() override {
    if (const auto stream = stream_.lock()) stream->set_producer(nullptr);
    const std::shared_ptr<Missed> dropped = std::move(missed_);
  }

  std::weak_ptr<Session> session_;
  std::weak_ptr<ChunkStream> stream_;  // locked only on its loop
  std::shared_ptr<Missed> missed_;     // null while nothing is missed
};

/// Thread-safe.
class ChangeNotifier::Loop {
 public:
  explicit Loop(StreamShard shard) : shard_(shard) {}

  [[nodiscard]] bool runs_on(const Executor& loop) const { return shard_.executor == &loop; }

  void add(std::weak_ptr<ChangeListener> listener) {
    const std::lock_guard lock(mutex_);
    if (listeners_.use_count() > 1) listeners_ = std::make_shared<Listeners>(*listeners_);
    if (listeners_->size() >= sweep_at_) {
      std::erase_if(*listeners_, [](const auto& each) { return each.expired(); });
      sweep_at_ = std::max<std::size_t>(64, 2 * listeners_->size());
    }
    listeners_->push_back(std::move(listener));
  }

  /// Sends `change` in a later task to those who want it by then.
  void tell(const Change& change) {
    const std::lock_guard lock(mutex_);
    if (listeners_->empty()) return;
    // Of so many different changes, only those are kept that somebody wants.
    if (untold_.size() >= kMostUnasked && !is_wanted(change)) return;
    untold_.add(change);
    post();
  }

  /// Sends `message` to the standalone stream of `session`, which belongs to this loop.
  void send(const std::shared_ptr<Session>& session, const std::string& state_of,
            const std::shared_ptr<const std::string>& message) {
    shard_.executor->post([this, session, state_of, message] {
      const std::optional<StreamId> id = session->standalone_stream();
      const std::shared_ptr<StandaloneStream> writer = session->standalone_writer();
      // What is sent counts as access.
      if (!id || writer == nullptr ||
          !shard_.streams->find(*id, session->stream_principal()).has_value()) {
        return;
      }
      writer->say(state_of, *message);
    });
  }

  void close() {
    shard_.executor->post([this] {
      while (look()) {
      }
      for (const auto& each : *listeners()) {
        if (const auto listener = each.lock()) listener->close();
      }
    });
  }

 private:
  using Listeners = std::vector<std::weak_ptr<ChangeListener>>;
  static constexpr std::size_t kMostUnasked = 1024;
  /// How many listeners are looked at in one task.
  static constexpr std::size_t kLooks = 1024;

  [[nodiscard]] std::shared_ptr<const Listeners> listeners() {
    const std::lock_guard lock(mutex_);
    return listeners_;
  }

  // With the mutex locked.

  [[nodiscard]] bool is_wanted(const Change& change) const {
    return std::ranges::any_of(*listeners_, [&](const std::weak_ptr<ChangeListener>& each) {
      const auto listener = each.lock();
      return listener != nullptr && listener->wants(change);
    });
  }
  void post() {
    if (is_posted_) return;
    shard_.executor->post([this] { tell_some(); });
    is_posted_ = true;  // only now, because posting may fail
  }

  // On the loop.

  void tell_some() {
    {
      const std::lock_guard lock(mutex_);
      is_posted_ = false;
    }
    try {
      for (std::size_t looks = 0; looks < kLooks; ++looks) {
        if (!look()) return;
      }
    } catch (...) {
      // The other listeners are told nevertheless.
      const std::lock_guard lock(mutex_);
      post();
      throw;
    }
    const std::lock_guard lock(mutex_);
    post();
  }

  /// Tells the next listener of the current change, if that listener wants it. Returns false if
  /// there is nothing to tell.
  bool look() {
    if (round_.next == round_.listeners->size()) {
      const std::lock_guard lock(mutex_);
      round_ = {.listeners = listeners_};
      if (untold_.empty()) {
        round_.next = listeners_->size();
        return false;
      }
      round_.change = untold_.take();
      if (listeners_->empty()) return true;
    }
    const auto listener = (*round_.listeners)[round_.next++].lock();
    if (listener != nullptr && listener->wants(round_.change)) listener->tell(round_.change);
    return true;
  }

  /// The change that is being told.
  struct Round {
    std::shared_ptr<const Listeners> listeners = std::make_shared<Listeners>();
    std::size_t next = 0;
    Change change = {};
  };

  StreamShard shard_;
  Round round_;  // on the loop
  std::mutex mutex_;
  /// Copied before it is changed if a round uses it.
  std::shared_ptr<Listeners> listeners_ = std::make_shared<Listeners>();
  std::size_t sweep_at_ = 64;  // the number of listeners at which expired ones are dropped
  MissedChanges untold_;       // what this loop has not begun to tell
  bool is_posted_ = false;     // whether there is a task that calls tell_some()
};

ChangeNotifier::ChangeNotifier(const std::vector<StreamShard>& shards) {
  for (const StreamShard& shard : shards) loops_.push_back(std::make_unique<Loop>(shard));
}

ChangeNotifier::~ChangeNotifier() = default;

void ChangeNotifier::add(Executor& loop, std::weak_ptr<ChangeListener> listener) {
  const auto runs_there = [&](const auto& each) { return each->runs_on(loop); };
  (*std::ranges::find_if(loops_, runs_there))->add(std::move(listener));
}

StreamId ChangeNotifier::add(const std::shared_ptr<Session>& session,
                             const std::shared_ptr<ChunkStream>& stream) {
  const auto writer = std::make_shared<StandaloneStream>(session, stream);
  Executor& loop = stream->executor();
  const StreamId id = session->offer_standalone_stream(stream, loop, writer);
  if (id == stream->id()) add(loop, writer);
  return id;
}

void ChangeNotifier::publish(const Change& change) {
  for (const auto& loop : loops_) loop->tell(change);
}

void ChangeNotifier::send(const std::shared_ptr<Session>& session, const std::string& state_of,
                          const std::shared_ptr<const std::string>& message) {
  if (session->send(state_of, message)) return;
  const std::optional<StreamId> id = session->standalone_stream();
  if (!id) return;
  loops_[StreamManager::loop_of(*id, loops_.size())]->send(session, state_of, message);
}

void ChangeNotifier::close() {
  for (const auto& loop : loops_) loop->close();
}

}  // namespace sluice

#include "server/changes.hpp"

#include <algorithm>
#include <utility>

#include "core/json.hpp"

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
  auto node = changes_.extract(changes_.begin());
  return {.kind = node.value().first, .subject = std::move(node.value().second)};
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

void Changes::add(Executor& loop, std::weak_ptr<ChangeListener> listener) {
  const std::lock_guard lock(mutex_);
  if (listeners_.size() >= sweep_at_) {
    std::erase_if(listeners_, [](const Entry& entry) { return entry.listener.expired(); });
    sweep_at_ = std::max<std::size_t>(64, 2 * listeners_.size());
  }
  listeners_.push_back({&loop, std::move(listener)});
}

void Changes::publish(const Change& change) {
  {
    const std::lock_guard lock(mutex_);
    for (const Entry& entry : listeners_) {
      const auto listener = entry.listener.lock();
      if (listener == nullptr || !listener->wants(change)) continue;
      entry.loop->post([weak = entry.listener, change] {
        if (const auto self = weak.lock()) self->tell(change);
      });
    }
  }
  const auto message = std::make_shared<const std::string>(message_of(change));
  for (const std::shared_ptr<Session>& session : sessions_->sessions()) {
    if (wants(*session, change)) send_on_stream(session, message);
  }
}

void Changes::send(const std::shared_ptr<Session>& session, const std::string& state_of,
                   const std::shared_ptr<const std::string>& message) {
  if (!session->send(state_of, message)) send_on_stream(session, message);
}

void Changes::send_on_stream(const std::shared_ptr<Session>& session,
                             const std::shared_ptr<const std::string>& message) {
  on_standalone_stream(session, [message](ChunkStream& stream) {
    if (!stream.paused()) stream.append(ChunkKind::message, *message);
  });
}

void Changes::close() {
  {
    const std::lock_guard lock(mutex_);
    for (const Entry& entry : listeners_) {
      entry.loop->post([weak = entry.listener] {
        if (const auto listener = weak.lock()) listener->close();
      });
    }
  }
  for (const std::shared_ptr<Session>& session : sessions_->sessions()) {
    on_standalone_stream(session, [](ChunkStream& stream) {
      const bool is_read = stream.has_readers();
      stream.finish();
      // A shutdown waits for readers of what has ended; nobody comes for this one any more.
      if (!is_read) stream.note_delivered();
    });
  }
}

void Changes::on_standalone_stream(const std::shared_ptr<Session>& session,
                                   std::function<void(ChunkStream&)> work) {
  const std::optional<StreamId> id = session->standalone_stream();
  if (!id) return;
  const StreamShard& shard = shards_[StreamManager::loop_of(*id, shards_.size())];
  shard.executor->post([streams = shard.streams, session, id = *id, work = std::move(work)] {
    if (const auto stream = streams->find(id, session->stream_principal())) work(**stream);
  });
}

}  // namespace sluice

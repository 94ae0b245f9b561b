#include "server/streams/stream_service.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "core/sharing/client.hpp"
#include "protocol/negotiation.hpp"
#include "rpc/error_codes.hpp"
#include "server/sessions/session.hpp"
#include "server/streams/collected_run.hpp"
#include "server/streams/remote_subscription.hpp"
#include "server/streams/stream_polls.hpp"
#include "stream/stream_error.hpp"

namespace sluice {
namespace {

/// The most streams of one loop in a list of streams: those started last.
constexpr std::size_t kMaxListed = 1000;
constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

class LocalSubscription final : public Subscription {
 public:
  LocalSubscription(std::shared_ptr<ChunkStream> stream, const ChunkEncoder& encoder,
                    std::unique_ptr<BlockSink> sink, PushCursor::Options options)
      : Subscription(is_over_at(*stream, options.from)),
        cursor_(std::move(stream), encoder, std::move(sink), options) {}
  void resume() override { cursor_.resume(); }
  void acknowledge(Seq seq, Answer answer) override { answer(cursor_.acknowledge(seq)); }

 private:
  PushCursor cursor_;
};

/// A function that answers `request` through `channel`. To be called on the caller's loop.
std::move_only_function<void(Result<std::string>)> respond_through(
    std::shared_ptr<ReplyChannel> channel, const Message& request) {
  return [channel = std::move(channel), id = request.id,
          form = result_form(request)](Result<std::string> result) {
    static constexpr std::size_t kAround = 64;
    std::string message;
    if (result) {
      message.reserve(result->size() + id.size() + kAround);
      append_stream_result(message, id, form, *result);
    } else {
      append_error(message, id, result.error());
    }
    channel->on_close({});
    channel->reply(200, std::move(message));
  };
}

/// Who sends a message. A session that it does not have is not missed here.
MethodCaller caller_of(Caller& caller) {
  return {.principal = caller.principal(),
          .storage = [&caller]() -> std::shared_ptr<SessionStorage> {
            if (std::shared_ptr<SessionStorage> storage = caller.storage()) return storage;
            const Result<std::shared_ptr<Session>> session = caller.session();
            if (!session || *session == nullptr) return nullptr;
            return {*session, &(*session)->storage()};
          }};
}

std::string status_result(std::string_view stream_id, std::string_view status) {
  std::string out = R"({"stream_id":")";
  append_json_escaped(out, stream_id);
  out.append(R"(","status":")").append(status).append("\"}");
  return out;
}

/// Whether abort or is_running is about all runs of the caller: it names nothing, and nobody else
/// has the caller's principal.
bool is_about_all(const Message& message, Caller& caller) {
  static constexpr std::array<std::string_view, 2> kNoNames = {"_meta", "handle_id"};
  return caller.principal().isolated &&
         std::ranges::all_of(*message.params, [](const auto& member) {
           return std::ranges::find(kNoNames, std::string_view(member.key())) != kNoNames.end();
         });
}

std::vector<std::shared_ptr<ChunkStream>> running_of(
    const std::vector<std::shared_ptr<ChunkStream>>& streams) {
  std::vector<std::shared_ptr<ChunkStream>> out;
  for (const auto& each : streams) {
    if (!each->ended() && !each->is_private()) out.push_back(each);
  }
  return out;
}

/// The result of abort and is_running about all runs. `status`: if there are any.
std::string count_result(std::string_view status, const std::vector<std::string>& counts) {
  std::size_t sum = 0;
  for (const std::string& each : counts) sum += std::stoul(each);
  return R"({"status":")" + std::string(sum == 0 ? "idle" : status) + R"(","streams":)" +
         std::to_string(sum) + "}";
}

void append_summary(std::string& out, const ChunkStream& stream) {
  out.append(R"({"stream_id":")").append(stream.id()).append(R"(","method":)");
  append_json_string(out, stream.method());
  out.append(R"(,"state":")").append(to_string(stream.state())).append(R"(","priority":)");
  append_number(out, stream.priority());
  out.append(R"(,"oldest_seq":)");
  append_number(out, stream.first());
  out.append(R"(,"next_seq":)");
  append_number(out, stream.next());
  out.append("}");
}

}  // namespace

std::string started_result(const ChunkStream& stream) {
  return status_result(stream.id(), "streaming_started");
}

ResultForm result_form(const Message& message) {
  return is_self_contained(message) ? ResultForm::typed : ResultForm::bare;
}

void end_stream_result(std::string& out, ResultForm form) {
  if (form == ResultForm::typed) {
    out.pop_back();
    out.append(R"(,"resultType":"complete"})");
  }
  end_result(out);
}

void append_stream_result(std::string& out, const RequestId& id, ResultForm form,
                          std::string_view result) {
  begin_result(out, id);
  out.append(result);
  end_stream_result(out, form);
}

Seq start_position(const ChunkStream& stream, std::optional<Seq> from) {
  if (from == kUndelivered) return stream.undelivered();
  const Seq wanted = from.value_or(stream.first());
  return stream.is_private() ? std::max(wanted, stream.first()) : wanted;
}

Error StreamService::shutting_down() {
  return {kBusy, "The server is shutting down; try another", {}};
}

Result<Seq> begin_reading(ChunkStream& stream, std::optional<Seq> from) {
  const Seq place = start_position(stream, from);
  Result<void> valid = stream.check_position(place);
  if (valid && stream.is_private()) {
    stream.dismiss_readers();
    // The reader that was dismissed may have ended the stream.
    valid = stream.check_position(place);
  }
  if (!valid) return std::unexpected(std::move(valid.error()));
  return place;
}

bool is_over_at(const ChunkStream& stream, Seq from) {
  return stream.ended() && from >= stream.next();
}

/// Something about all streams of a caller. Every loop adds the part of its own streams. The last
/// one posts the parts to the caller's loop, where they become the result.
struct StreamService::Gathering {
  std::size_t most;  // streams of each loop
  PartOf part;
  WholeOf whole;
  std::vector<std::string> parts;
  std::atomic<std::size_t> missing;
  std::move_only_function<void(Result<std::string>)> respond;
};

StreamService::StreamService(const ServerDefinition& definition, std::vector<StreamShard> shards,
                             std::size_t loop)
    : definition_(&definition), shards_(std::move(shards)), loop_(loop) {}

bool StreamService::serves(std::string_view method) const {
  if (!definition_->has_streams || method.contains('/')) return false;
  if (definition_->find_stream_method(method) != nullptr ||
      definition_->functions.contains(method)) {
    return true;
  }
  const std::string_view plain = definition_->plain_name(method);
  return plain == "abort" || plain == "cancel" || plain == "is_running" || plain == "streams" ||
         plain == "ack" || plain == "subscribe" || plain == "unsubscribe";
}

Result<std::shared_ptr<ChunkStream>> StreamService::start(const StreamMethod& method,
                                                          const json::object& params,
                                                          const MethodCaller& caller,
                                                          const RunStart& options,
                                                          bool expects_poller) {
  if (draining_) return std::unexpected(shutting_down());
  Result<std::shared_ptr<ChunkStream>> stream = streams().start({.principal = caller.principal.id,
                                                                 .method = method.name.c_str(),
                                                                 .priority = options.priority,
                                                                 .expects_poller = expects_poller});
  if (!stream) return stream;
  if (Result<void> started = method.handler(params, caller, *stream); !started) {
    streams().discard(**stream);
    return std::unexpected(std::move(started.error()));
  }
  return stream;
}

bool StreamService::handle(const Message& message, Caller& caller, std::string& out) {
  static const json::object kNoParams;
  Message request = message;
  if (request.params == nullptr) request.params = &kNoParams;
  if (const StreamMethod* method = definition_->find_stream_method(request.method)) {
    return is_poll(*request.params) ? poll(request, caller, out)
                                    : run_whole(request, *method, caller, out);
  }
  const std::string_view plain = definition_->plain_name(request.method);
  if (plain == "abort" || plain == "cancel") return abort(request, caller, out);
  if (plain == "is_running") return is_running(request, caller, out);
  if (request.method == "ack") return acknowledge(request, caller, out);
  if (request.method == "streams") return list(request, caller, out);
  const auto function = definition_->functions.find(request.method);
  if (function != definition_->functions.end()) {
    return call(request, function->second, caller, out);
  }
  append_error(out, request.id,
               {kInvalidRequest, "Invalid Request: " + std::string(request.method) +
                                     " works on a WebSocket; over HTTP read /streams/{stream_id}"});
  return true;
}

void StreamService::notify(const Message& message, Caller& caller) {
  static const json::object kNoParams;
  Message heard = message;
  if (heard.params == nullptr) heard.params = &kNoParams;
  std::string unheard;
  const std::string_view plain = definition_->plain_name(heard.method);
  if (plain == "abort" || plain == "cancel") {
    if (is_about_all(heard, caller)) return abort_all(caller.principal().id);
    abort(heard, caller, unheard);
  } else if (plain == "ack") {
    acknowledge(heard, caller, unheard);
  }
}

void StreamService::abort_all(const std::string& principal) {
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    StreamManager* const manager = shards_[i].streams;
    auto abort_here = [manager, principal] {
      for (const auto& each : running_of(manager->streams_of(principal, kAll))) each->cancel();
    };
    i == loop_ ? abort_here() : shards_[i].executor->post(std::move(abort_here));
  }
}

template <class Work>
void StreamService::on_shard_of(std::string_view stream_id, Work work) {
  const std::size_t target = StreamManager::loop_of(stream_id, shards_.size());
  StreamManager& manager = *shards_[target].streams;
  if (target == loop_) {
    work(manager);
  } else {
    shards_[target].executor->post([&manager, work = std::move(work)]() mutable { work(manager); });
  }
}

bool StreamService::poll(const Message& message, Caller& caller, std::string& out) {
  Result<RunPoll> poll = decode_run_poll(*message.params);
  if (!poll) {
    append_error(out, message.id, poll.error());
    return true;
  }
  const std::size_t target = StreamManager::loop_of(poll->stream_id, shards_.size());
  if (target == loop_ && streams().work().has_left() && caller.has_capacity()) {
    std::optional<Seq> place;
    const Result<std::shared_ptr<ChunkStream>> stream =
        begin_poll(streams(), *poll, caller.principal().id, place);
    if (!stream) {
      append_error(out, message.id, stream.error());
      return true;
    }
    const std::size_t before = out.size();
    begin_result(out, message.id);
    if (answer_poll(out, **stream, *place, *poll)) {
      end_stream_result(out, result_form(message));
      return true;
    }
    out.resize(before);
  }
  Result<std::shared_ptr<ReplyChannel>> channel = caller.open_channel(message.id);
  if (!channel) {
    append_error(out, message.id, channel.error());
    return true;
  }
  (*channel)->may_take_long();
  std::make_shared<LongPoll>(LongPoll::Facts{.poll = *std::move(poll),
                                             .principal = caller.principal().id,
                                             .loop = &executor(),
                                             .work = &streams().work(),
                                             .streams = shards_[target].streams,
                                             .channel = *channel,
                                             .respond = respond_through(*channel, message),
                                             .mark = answer_mark_})
      ->start();
  return false;
}

bool StreamService::run_whole(const Message& message, const StreamMethod& method, Caller& caller,
                              std::string& out) {
  Result<RunStart> options = decode_run_start(*message.params);
  if (!options) {
    append_error(out, message.id, options.error());
    return true;
  }
  const bool streams_it = wants_stream(*message.params, method.streams);
  Result<std::shared_ptr<ChunkStream>> stream =
      start(method, *message.params, caller_of(caller), *options, streams_it);
  if (!stream) {
    append_error(out, message.id, stream.error());
    return true;
  }
  if (streams_it) {
    append_stream_result(out, message.id, result_form(message), started_result(**stream));
    return true;
  }
  Result<std::shared_ptr<ReplyChannel>> channel = caller.open_channel(message.id);
  if (!channel) {
    streams().discard(**stream);
    append_error(out, message.id, channel.error());
    return true;
  }
  (*channel)->may_take_long();
  answer_whole(streams(), std::move(*stream), message, std::move(*channel), answer_mark_);
  return false;
}

template <class Work>
bool StreamService::on_stream(const Message& message, Caller& caller, std::string& out,
                              const std::string& stream_id, Work work) {
  if (message.kind == MessageKind::notification) {
    on_shard_of(stream_id,
                [work = std::move(work)](StreamManager& manager) { (void)work(manager); });
    return true;
  }
  const std::size_t target = StreamManager::loop_of(stream_id, shards_.size());
  if (target == loop_) {
    const Result<std::string> result = work(streams());
    if (result) {
      append_stream_result(out, message.id, result_form(message), *result);
    } else {
      append_error(out, message.id, result.error());
    }
    return true;
  }
  Result<std::shared_ptr<ReplyChannel>> channel = caller.open_channel(message.id);
  if (!channel) {
    append_error(out, message.id, channel.error());
    return true;
  }
  Executor* const here = &executor();
  on_shard_of(stream_id,
              [work = std::move(work), here,
               respond = respond_through(*channel, message)](StreamManager& manager) mutable {
                here->post([respond = std::move(respond), result = work(manager)]() mutable {
                  respond(std::move(result));
                });
              });
  return false;
}

bool StreamService::abort(const Message& message, Caller& caller, std::string& out) {
  if (is_about_all(message, caller)) {
    return gather(
        message, caller, out, kAll,
        [](const StreamList& streams) {
          const StreamList running = running_of(streams);
          for (const auto& each : running) each->cancel();
          return std::to_string(running.size());
        },
        [](const std::vector<std::string>& parts) { return count_result("aborted", parts); });
  }
  const Result<std::string> id = decode_stream_id(*message.params);
  if (!id) {
    append_error(out, message.id, id.error());
    return true;
  }
  return on_stream(
      message, caller, out, *id,
      [id = *id, principal = caller.principal().id](StreamManager& manager) -> Result<std::string> {
        const Result<std::shared_ptr<ChunkStream>> stream = manager.find(id, principal);
        if (!stream) return std::unexpected(stream.error());
        const bool running = !(*stream)->ended();
        if (running) (*stream)->cancel();
        return status_result(id, running ? "aborted" : to_string((*stream)->state()));
      });
}

bool StreamService::is_running(const Message& message, Caller& caller, std::string& out) {
  if (is_about_all(message, caller)) {
    return gather(
        message, caller, out, kAll,
        [](const StreamList& streams) { return std::to_string(running_of(streams).size()); },
        [](const std::vector<std::string>& parts) { return count_result("running", parts); });
  }
  const Result<std::string> id = decode_stream_id(*message.params);
  if (!id) {
    append_error(out, message.id, id.error());
    return true;
  }
  return on_stream(
      message, caller, out, *id,
      [id = *id, principal = caller.principal().id,
       definition = definition_](StreamManager& manager) -> Result<std::string> {
        const Result<std::shared_ptr<ChunkStream>> stream = manager.find(id, principal);
        if (!stream) return std::unexpected(stream.error());
        std::string out_json = status_result(id, (*stream)->ended() ? "idle" : "running");
        out_json.pop_back();
        out_json.append(R"(,"state":")").append(to_string((*stream)->state())).append("\"");
        out_json.append(R"(,"next_seq":)");
        append_number(out_json, (*stream)->next());
        const StreamMethod* const method = definition->find_stream_method((*stream)->method());
        if (method != nullptr && method->status && !(*stream)->ended()) {
          if (const std::string members = method->status(**stream); !members.empty()) {
            out_json.append(",").append(members);
          }
        }
        out_json.push_back('}');
        return out_json;
      });
}

bool StreamService::acknowledge(const Message& message, Caller& caller, std::string& out) {
  const Result<Acknowledge> ack = decode_ack(*message.params);
  if (!ack) {
    append_error(out, message.id, ack.error());
    return true;
  }
  return on_stream(message, caller, out, ack->stream_id,
                   [ack = *ack, principal = caller.principal().id](
                       StreamManager& manager) -> Result<std::string> {
                     const Result<std::shared_ptr<ChunkStream>> stream =
                         manager.find(ack.stream_id, principal);
                     if (!stream) return std::unexpected(stream.error());
                     if (Result<void> valid = (*stream)->check_position(ack.seq); !valid) {
                       return std::unexpected(std::move(valid.error()));
                     }
                     (*stream)->acknowledge(ack.seq);
                     return status_result(ack.stream_id, "acknowledged");
                   });
}

bool StreamService::list(const Message& message, Caller& caller, std::string& out) {
  if (!caller.principal().isolated) {
    // Its streams cannot be told from those of others with the same principal, so none is listed.
    append_stream_result(out, message.id, result_form(message), R"({"streams":[]})");
    return true;
  }
  return gather(
      message, caller, out, kMaxListed,
      [](const StreamList& streams) {
        std::string part;
        for (const auto& stream : streams) {
          if (!part.empty()) part.push_back(',');
          append_summary(part, *stream);
        }
        return part;
      },
      [](const std::vector<std::string>& parts) {
        std::string result = R"({"streams":[)";
        for (const std::string& each : parts) {
          if (each.empty()) continue;
          if (result.back() != '[') result.push_back(',');
          result.append(each);
        }
        return result.append("]}");
      });
}

bool StreamService::gather(const Message& message, Caller& caller, std::string& out,
                           std::size_t most, PartOf part, WholeOf whole) {
  Result<std::shared_ptr<ReplyChannel>> channel = caller.open_channel(message.id);
  if (!channel) {
    append_error(out, message.id, channel.error());
    return true;
  }
  const auto gathering = std::make_shared<Gathering>();
  gathering->most = most;
  gathering->part = part;
  gathering->whole = whole;
  gathering->parts.resize(shards_.size());
  gathering->missing = shards_.size();
  gathering->respond = respond_through(*channel, message);
  (*channel)->when_writable(
      [this, gathering, client = client_of(caller.principal().id),
       principal = caller.principal().id] { gather_all(gathering, client, principal); });
  return false;
}

bool StreamService::call(const Message& message, const Function::Handler& function, Caller& caller,
                         std::string& out) {
  Result<std::shared_ptr<ReplyChannel>> channel = caller.open_channel(message.id);
  if (!channel) {
    append_error(out, message.id, channel.error());
    return true;
  }
  function({.params = *message.params,
            .caller = caller_of(caller),
            .memory = streams().memory_of(caller.principal().id),
            .home = executor()},
           respond_through(*channel, message));
  return false;
}

void StreamService::gather_all(const std::shared_ptr<Gathering>& gathering,
                               const std::string& client, const std::string& principal) {
  Executor* const here = &executor();
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    StreamManager* const manager = shards_[i].streams;
    auto gather_here = [gathering, manager, i, here, principal] {
      std::string& part = gathering->parts[i];
      part = gathering->part(manager->streams_of(principal, gathering->most));
      manager->work().worked(part.size());
      if (gathering->missing.fetch_sub(1) != 1) return;
      here->post([gathering] { gathering->respond(gathering->whole(gathering->parts)); });
    };
    // What the caller begins after this is not meant.
    if (i == loop_) {
      gather_here();
      continue;
    }
    shards_[i].executor->post([manager, client, gather_here = std::move(gather_here)]() mutable {
      manager->work().run(client, std::move(gather_here));
    });
  }
}

std::unique_ptr<Subscription> StreamService::subscribe_local(std::shared_ptr<ChunkStream> stream,
                                                             Seq from, std::size_t window,
                                                             const ChunkEncoder& encoder,
                                                             bool shareable,
                                                             std::unique_ptr<BlockSink> sink) {
  PushCursor::Options options;
  options.from = from;
  options.window = window;
  options.shareable = shareable;
  return std::make_unique<LocalSubscription>(std::move(stream), encoder, std::move(sink), options);
}

void StreamService::subscribe(const std::string& stream_id, const std::string& principal,
                              std::optional<Seq> from, std::size_t window,
                              const ChunkEncoder& encoder, bool shareable,
                              std::unique_ptr<BlockSink> sink, Subscribed answer) {
  const std::size_t target = StreamManager::loop_of(stream_id, shards_.size());
  if (target != loop_) {
    subscribe_remote({.stream_id = stream_id,
                      .principal = principal,
                      .from = from,
                      .window = window,
                      .encoder = &encoder,
                      .shareable = shareable},
                     shards_[target], executor(), std::move(sink), std::move(answer));
    return;
  }
  Result<std::shared_ptr<ChunkStream>> stream = streams().find(stream_id, principal);
  if (!stream) {
    answer(std::unexpected(std::move(stream.error())));
    return;
  }
  const Result<Seq> start_at = begin_reading(**stream, from);
  if (!start_at) {
    answer(std::unexpected(start_at.error()));
    return;
  }
  answer(
      subscribe_local(std::move(*stream), *start_at, window, encoder, shareable, std::move(sink)));
}

}  // namespace sluice

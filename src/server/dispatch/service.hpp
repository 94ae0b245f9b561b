#pragma once

#include <memory>
#include <string>
#include <vector>

#include "auth/access_policy.hpp"
#include "core/sharing/client_memory.hpp"
#include "rpc/message.hpp"
#include "server/catalog/catalog.hpp"
#include "server/dispatch/dispatcher.hpp"
#include "server/notifications/change_notifier.hpp"
#include "server/sessions/session_registry.hpp"
#include "server/streams/stream_service.hpp"
#include "server/workers/long_messages.hpp"

namespace sluice {

/// What one loop needs to answer requests, whatever the transport. Belongs to its loop.
struct Service {
  /// `parsers` is as for LongMessages. `checkers` check what takes long to check, `writers` check
  /// and write long results. They are different workers, because checking may take much longer than
  /// the rest: it runs code of the user. `buffers` has the clients' shares of
  /// the memory of all buffers and outlives this; null: there is no limit. Later catalogs
  /// (Dispatcher::take()) must have the same stream methods as `catalog`.
  Service(const RefPtr<LoopCatalog>& catalog, const AccessPolicy& policy,
          SessionRegistry& open_sessions, ClientQuota& calls, ChangeNotifier& announced,
          TaskStore& tasks, std::vector<StreamShard> shards, std::size_t loop,
          WorkerPool* parsers = nullptr, WorkerPool* checkers = nullptr,
          WorkerPool* writers = nullptr, ClientMemory* buffers = nullptr)
      : first(catalog),
        access(&policy),
        sessions(&open_sessions),
        changes(&announced),
        memory(buffers),
        streams(catalog->definition(), std::move(shards), loop),
        long_messages(streams.executor(), parsers, buffers),
        checks(streams.executor(), checkers, buffers),
        dispatcher(catalog, streams, open_sessions, calls, announced, tasks, long_messages, checks,
                   writers) {}

  RefPtr<LoopCatalog> first;  // the one that the stream methods come from
  const AccessPolicy* access;
  SessionRegistry* sessions;  // shared by all loops
  ChangeNotifier* changes;    // the same
  ClientMemory* memory;       // the same; or null
  StreamService streams;
  LongMessages long_messages;
  LongMessages checks;
  Dispatcher dispatcher;
  /// Call after each message: releases the memory that a long message or a long answer took.
  void trim() {
    parser.forget_long();
    if (response.capacity() > kKeptResponse) response = {};
  }

  static constexpr std::size_t kKeptResponse = std::size_t{64} << 10U;

  /// The share of `principal` in the memory of all buffers; null: there is no limit.
  [[nodiscard]] std::shared_ptr<MemoryShare> memory_of(const std::string& principal) const {
    return memory == nullptr ? nullptr : memory->of(principal);
  }

  MessageParser parser;
  std::string response;  // reused for every immediate answer
};

}  // namespace sluice

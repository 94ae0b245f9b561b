#pragma once

#include <string>
#include <vector>

#include "rpc/message.hpp"
#include "server/access_policy.hpp"
#include "server/changes.hpp"
#include "server/definition.hpp"
#include "server/dispatcher.hpp"
#include "server/result_writer.hpp"
#include "server/session_registry.hpp"
#include "server/stream_service.hpp"

namespace sluice {

/// What one loop needs to answer requests, whatever the transport. Belongs to its loop.
struct Service {
  Service(const ServerDefinition& server, const ResultWriter& results, const FeatureLists& lists,
          const ToolSchemas& schemas, const AccessPolicy& policy, SessionRegistry& open_sessions,
          Changes& announced, TaskStore& tasks, std::vector<StreamShard> shards, std::size_t loop)
      : definition(&server),
        access(&policy),
        sessions(&open_sessions),
        changes(&announced),
        streams(server, std::move(shards), loop),
        dispatcher(server, results, lists, schemas, streams, announced, tasks) {}

  const ServerDefinition* definition;
  const AccessPolicy* access;
  SessionRegistry* sessions;  // shared by all loops
  Changes* changes;           // the same
  StreamService streams;
  Dispatcher dispatcher;
  MessageParser parser;
  std::string response;  // used again for every immediate answer
};

}  // namespace sluice

#pragma once

#include <cstdint>
#include <string>

#include "protocol/negotiation.hpp"
#include "rpc/message.hpp"
#include "server/definition.hpp"
#include "server/reply_channel.hpp"
#include "server/result_writer.hpp"
#include "server/stream_service.hpp"

namespace sluice {

/// What became of a message.
struct Outcome {
  enum class Kind : std::uint8_t {
    answered,  // the response has been appended
    accepted,  // a notification or response: nothing to send
    pending,   // answered later through a channel of the caller
  };
  Kind kind = Kind::answered;
  int http_status = 200;
};

/// MCP's methods on one loop, for every era and transport.
class Dispatcher {
 public:
  Dispatcher(const ServerDefinition& definition, const ResultWriter& results,
             StreamService& streams);

  /// Handles one message of `caller`; a response goes to the end of `out`. `headers` as for
  /// negotiate(): null on transports without.
  Outcome dispatch(const Message& message, const MirroredHeaders* headers, Caller& caller,
                   std::string& out);

  /// The response to a text that is no message.
  static Outcome reject(const MessageError& error, std::string& out);

 private:
  Outcome initialize(const Message& message, std::string& out);
  Outcome call_tool(const Message& message, RequestContext context, Caller& caller,
                    std::string& out);
  Outcome error(const RequestId& id, const Error& error, const Revision* revision,
                std::string& out);

  const ServerDefinition* definition_;
  const ResultWriter* results_;
  StreamService* streams_;
  std::string tools_member_;
  std::string discover_members_;
  std::string initialize_members_;
};

}  // namespace sluice

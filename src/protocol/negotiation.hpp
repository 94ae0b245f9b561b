#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "protocol/client_capabilities.hpp"
#include "protocol/logging_level.hpp"
#include "protocol/mirrored_headers.hpp"
#include "protocol/revision.hpp"
#include "protocol/syntax/trace_context.hpp"
#include "rpc/message.hpp"
#include "sluice/client_info.hpp"

namespace sluice {

class SessionStorage;

/// An HTTP header field that handlers may read.
struct RequestField {
  std::string name;
  std::optional<std::string>
      value;  // nothing if the request does not have it, or has it repeatedly
};

/// What handlers may ask about who sent a request, besides the principal.
struct RequestSender {
  std::shared_ptr<const ClientInfo> info = {};   // from its session's initialize, or null
  std::shared_ptr<SessionStorage> storage = {};  // null without a session
  std::vector<RequestField> fields = {};         // those that the server's options name
};

/// The member of `_meta` in which a client says what it is (2026-07-28, Base Protocol, `_meta`).
inline constexpr std::string_view kClientInfoKey = "io.modelcontextprotocol/clientInfo";

/// The member of `_meta` in which a server says what it is (the same).
inline constexpr std::string_view kServerInfoKey = "io.modelcontextprotocol/serverInfo";

/// What a request says about itself, in any era.
struct RequestContext {
  const Revision* revision = nullptr;
  /// `_meta.progressToken` as JSON text; empty if the caller wants no progress notifications.
  std::string progress_token;
  /// What the client has declared: in the request itself from 2026-07-28 on, in its session before.
  ClientCapabilities capabilities;
  /// The lowest severity of log messages that the caller wants for this request; nothing if it
  /// wants none.
  std::optional<LoggingLevel> logging_level;
  /// The request's place in a distributed trace; null if it names none.
  std::unique_ptr<const TraceContext> trace;
  /// Set for requests that are answered later, unless there is nothing in it.
  std::shared_ptr<const RequestSender> sender = {};
};

/// Copies `context` for a second request that continues the first.
RequestContext copy_of(const RequestContext& context);

/// Finds the revision that `message` uses, and checks what that revision requires of a request. If
/// there are `headers`, checks also that they mirror the body (2026-07-28, Streamable HTTP, Server
/// Validation).
///
/// Errors: -32022 for a revision that is not supported (`data.supported`, `data.requested`); -32602
/// for `_meta` fields that are missing or have the wrong type; -32020 for headers that are missing
/// or do not match.
///
/// `agreed` is the revision of the caller's session, or null. If neither the request nor a session
/// names a revision, it is 2025-03-26 over HTTP (2025-11-25, Protocol Version Header), and the
/// newest legacy revision on other transports.
Result<RequestContext> negotiate(const Message& message, const MirroredHeaders* headers,
                                 const Revision* agreed);

/// The revision of messages that do not name one: `agreed`; otherwise what the header names;
/// otherwise as for negotiate(). A header that names another supported revision of the same era is
/// accepted (2025-11-25, Protocol Version Header: it SHOULD be the negotiated one). Errors: -32022
/// for a revision that is not supported, -32600 for a header that came more than once.
Result<const Revision*> implied_revision(const MirroredHeaders* headers, const Revision* agreed);

/// The -32022 for a revision that is not served.
Error unsupported_revision(std::string_view requested);

/// Whether `message` names its own revision, as messages do from 2026-07-28 on. Such a message does
/// not use a session.
bool is_self_contained(const Message& message);

/// The revision with which to answer an `initialize` request for `requested`: the same if it is a
/// supported legacy revision, otherwise the newest legacy one.
const Revision& negotiate_initialize(std::string_view requested);

}  // namespace sluice

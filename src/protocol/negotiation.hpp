#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "protocol/client_capabilities.hpp"
#include "protocol/logging_level.hpp"
#include "protocol/mirrored_headers.hpp"
#include "protocol/revision.hpp"
#include "protocol/syntax/trace_context.hpp"
#include "rpc/message.hpp"

namespace sluice {

/// What a request says about itself, whatever its era.
struct RequestContext {
  const Revision* revision = nullptr;
  /// `_meta.progressToken` as JSON text; empty: the caller wants no progress.
  std::string progress_token;
  /// What the client declared: from 2026-07-28 on with the request, before in its session.
  ClientCapabilities capabilities;
  /// The least severe log messages that the caller wants of this request; none: no messages.
  std::optional<LoggingLevel> logging_level;
  /// Where the request stands in a distributed trace; null: it does not say.
  std::unique_ptr<const TraceContext> trace;
};

/// For a second request that goes on where `context` was.
RequestContext copy_of(const RequestContext& context);

/// Finds the revision that `message` speaks and checks what that revision demands of a request.
/// With `headers`, also that they mirror the body (2026-07-28, Streamable HTTP, Server Validation).
///
/// Errors: -32022 for a revision that is not served (`data.supported`, `data.requested`), -32602
/// for missing or ill-typed `_meta` fields, -32020 for headers that are missing or do not match.
///
/// `agreed` is the revision of the caller's session or null. Requests that neither say nor have
/// agreed on one are taken for 2025-03-26's over HTTP (2025-11-25, Protocol Version Header), for
/// the newest legacy one's elsewhere.
Result<RequestContext> negotiate(const Message& message, const MirroredHeaders* headers,
                                 const Revision* agreed);

/// The revision of messages that do not say what they speak: `agreed`, else what the header names,
/// else as for negotiate(). A header that names another served revision of the same era is let pass
/// (2025-11-25, Protocol Version Header: it SHOULD be the one that was negotiated). -32022 for one
/// that is not served.
Result<const Revision*> implied_revision(const MirroredHeaders* headers, const Revision* agreed);

/// Whether `message` speaks for itself, as those of 2026-07-28 on do: then no session counts.
bool is_self_contained(const Message& message);

/// The revision that answers an `initialize` request asking for `requested`: itself if it is a
/// served legacy revision, else the newest legacy one.
const Revision& negotiate_initialize(std::string_view requested);

}  // namespace sluice

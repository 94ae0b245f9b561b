#include "protocol/negotiation.hpp"

#include <algorithm>

#include "core/text/utf8.hpp"
#include "protocol/error_codes.hpp"
#include "rpc/error_codes.hpp"
#include "rpc/message.hpp"

namespace sluice {
namespace {

constexpr std::string_view kVersionKey = "io.modelcontextprotocol/protocolVersion";
constexpr std::string_view kCapabilitiesKey = "io.modelcontextprotocol/clientCapabilities";
constexpr std::string_view kLoggingLevelKey = "io.modelcontextprotocol/logLevel";
/// The revision of HTTP requests that name none (2025-11-25, Protocol Version Header).
constexpr std::string_view kAssumedRevision = "2025-03-26";

/// Makes a header value valid UTF-8, so that an error's data can contain it.
std::string quotable(std::string_view value) {
  std::string out(value);
  if (!is_valid_utf8(value)) {
    std::ranges::replace_if(out, [](unsigned char c) { return c >= 0x80; }, '?');
  }
  return out;
}

Error unsupported(std::string_view requested, std::string message, const std::string& supported) {
  std::string data = R"({"supported":)" + supported + R"(,"requested":)";
  append_json_string(data, quotable(requested));
  data.push_back('}');
  return {kUnsupportedProtocolVersion, std::move(message), std::move(data)};
}

/// A message that names a legacy revision in its `_meta`. A client that took that revision from
/// `supported` would come back with the same message.
Error begins_with_initialize(std::string_view requested) {
  return unsupported(requested,
                     "Unsupported protocol version: to speak " + std::string(requested) +
                         ", begin with initialize",
                     revisions_json(Era::modern));
}

/// Fills in what a message of 2026-07-28 or later says about itself.
Result<void> negotiate_modern(const Message& message, const json::object& meta,
                              const json::value& version, const MirroredHeaders* headers,
                              RequestContext& context) {
  if (!version.is_string()) {
    return fail(kInvalidParams,
                "Invalid params: _meta[\"" + std::string(kVersionKey) + "\"] must be a string");
  }
  const std::string_view name = version.get_string();
  if (headers != nullptr && headers->protocol_version.data() != nullptr &&
      headers->protocol_version != name) {
    return std::unexpected(check_mirrored_headers(message, *headers, name).error());
  }
  const Revision* const revision = find_revision(name);
  if (revision == nullptr) return std::unexpected(unsupported_revision(name));
  if (revision->era != Era::modern) return std::unexpected(begins_with_initialize(name));
  if (headers != nullptr) {
    if (Result<void> checked = check_mirrored_headers(message, *headers, name); !checked) {
      return checked;
    }
  }
  const json::value* const capabilities = meta.if_contains(kCapabilitiesKey);
  if (capabilities == nullptr || !capabilities->is_object()) {
    return fail(kInvalidParams, "Invalid params: _meta[\"" + std::string(kCapabilitiesKey) +
                                    "\"] is required and must be an object");
  }
  if (const json::value* info = meta.if_contains(kClientInfoKey)) {
    if (!info->is_object()) {
      return fail(kInvalidParams, "Invalid params: _meta[\"" + std::string(kClientInfoKey) +
                                      "\"] must be an object");
    }
  }
  context.revision = revision;
  context.capabilities = decode_client_capabilities(capabilities->get_object(), *revision);
  if (const json::value* level = meta.if_contains(kLoggingLevelKey)) {
    if (level->is_string()) context.logging_level = parse_logging_level(level->get_string());
    if (!context.logging_level) {
      return fail(kInvalidParams, "Invalid params: _meta[\"" + std::string(kLoggingLevelKey) +
                                      "\"] must be a logging level such as \"info\"");
    }
  }
  return {};
}

const json::value* meta_of(const Message& message) {
  return message.params == nullptr ? nullptr : message.params->if_contains("_meta");
}

}  // namespace

Error unsupported_revision(std::string_view requested) {
  return unsupported(requested, "Unsupported protocol version", revisions_json());
}

RequestContext copy_of(const RequestContext& context) {
  return {.revision = context.revision,
          .progress_token = context.progress_token,
          .capabilities = context.capabilities,
          .logging_level = context.logging_level,
          .trace = context.trace == nullptr ? nullptr
                                            : std::make_unique<const TraceContext>(*context.trace),
          .sender = context.sender};
}

bool is_self_contained(const Message& message) {
  const json::value* const meta = meta_of(message);
  return meta != nullptr && meta->is_object() && meta->get_object().contains(kVersionKey);
}

Result<const Revision*> implied_revision(const MirroredHeaders* headers, const Revision* agreed) {
  if (headers != nullptr && headers->protocol_version.data() != nullptr) {
    if (headers->repeated == kVersionField) {
      return fail(kInvalidRequest, "The MCP-Protocol-Version header came more than once");
    }
    const Revision* const named = find_revision(headers->protocol_version);
    if (named == nullptr) return std::unexpected(unsupported_revision(headers->protocol_version));
    return agreed != nullptr && named->era == agreed->era ? agreed : named;
  }
  if (agreed != nullptr) return agreed;
  return headers == nullptr ? &newest_revision(Era::legacy) : find_revision(kAssumedRevision);
}

Result<RequestContext> negotiate(const Message& message, const MirroredHeaders* headers,
                                 const Revision* agreed) {
  const json::value* const meta_value = meta_of(message);
  if (meta_value != nullptr && !meta_value->is_object()) {
    return fail(kInvalidParams, "Invalid params: _meta must be an object");
  }
  const json::object* const meta = meta_value == nullptr ? nullptr : meta_value->if_object();
  const json::value* const version = meta == nullptr ? nullptr : meta->if_contains(kVersionKey);

  RequestContext context;
  if (version != nullptr) {
    Result<void> modern = negotiate_modern(message, *meta, *version, headers, context);
    if (!modern) return std::unexpected(std::move(modern.error()));
  } else {
    const Result<const Revision*> implied = implied_revision(headers, agreed);
    if (!implied) return std::unexpected(implied.error());
    // Only requests must have the member (2026-07-28, RequestMetaObject).
    if ((*implied)->era == Era::modern && message.kind == MessageKind::request) {
      return fail(kInvalidParams, "Invalid params: _meta[\"" + std::string(kVersionKey) +
                                      "\"] is required by protocol revision " +
                                      std::string((*implied)->name));
    }
    context.revision = *implied;
  }
  if (const json::value* token = meta == nullptr ? nullptr : meta->if_contains("progressToken")) {
    std::optional<std::string> exact =
        exact_text(*token, message.text, {"params", "_meta", "progressToken"});
    if (!exact) {
      return fail(kInvalidParams,
                  "Invalid params: _meta.progressToken must be a string or an integer");
    }
    if (exact->size() > kMaxRequestId) {
      return fail(kInvalidParams, "Invalid params: _meta.progressToken may have at most " +
                                      std::to_string(kMaxRequestId) + " bytes");
    }
    context.progress_token = std::move(*exact);
  }
  if (meta != nullptr) context.trace = decode_trace_context(*meta);
  return context;
}

const Revision& negotiate_initialize(std::string_view requested) {
  const Revision* const named = find_revision(requested);
  return named != nullptr && named->era == Era::legacy ? *named : newest_revision(Era::legacy);
}

}  // namespace sluice

#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "json/json.hpp"
#include "protocol/revision.hpp"
#include "sluice/client_info.hpp"

namespace sluice {

/// What the server may ask of a client, as its ClientCapabilities declare it: in `initialize`, and
/// from 2026-07-28 on in every request.
struct ClientCapabilities {
  bool roots = false;
  bool sampling = false;
  bool sampling_tools = false;  // sampling requests may include tools
  bool elicitation_form = false;
  bool elicitation_url = false;
  bool tasks = false;  // the client supports the tasks extension (SEP-2663)

  /// Whether the server may send the client any request.
  [[nodiscard]] bool any() const {
    return roots || sampling || elicitation_form || elicitation_url;
  }
};

/// Ignores members that `revision` does not have, and those of the wrong type.
ClientCapabilities decode_client_capabilities(const json::object& declared,
                                              const Revision& revision);

/// What an Implementation says. Members that are missing or have the wrong type are empty.
ClientInfo decode_client_info(const json::object& said);

/// What a client says when it begins a session.
struct ClientDescription {
  ClientCapabilities capabilities = {};
  std::shared_ptr<const ClientInfo> info = {};  // null: nothing
};

/// The capabilities that a request of `method` with `params` needs and that `declared` lacks, as
/// the JSON text of a ClientCapabilities object; empty if none is missing.
std::string missing_capabilities(const ClientCapabilities& declared, std::string_view method,
                                 const json::object& params);

}  // namespace sluice

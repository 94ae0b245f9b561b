#pragma once

#include <string>
#include <string_view>

#include "json/json.hpp"

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

/// Ignores members that are unknown or have the wrong type.
ClientCapabilities decode_client_capabilities(const json::object& declared);

/// The capabilities that a request of `method` with `params` needs and that `declared` lacks, as
/// the JSON text of a ClientCapabilities object; empty if none is missing.
std::string missing_capabilities(const ClientCapabilities& declared, std::string_view method,
                                 const json::object& params);

}  // namespace sluice

#pragma once

#include <string>
#include <string_view>

#include "json/json.hpp"

namespace sluice {

/// What a client can be asked for, as its ClientCapabilities declare it (in `initialize`, from
/// 2026-07-28 on in every request).
struct ClientCapabilities {
  bool roots = false;
  bool sampling = false;
  bool sampling_tools = false;  // sampling requests may offer tools
  bool elicitation_form = false;
  bool elicitation_url = false;
  bool tasks = false;  // the client knows the tasks extension (SEP-2663)

  /// Whether it can be asked for anything.
  [[nodiscard]] bool any() const {
    return roots || sampling || elicitation_form || elicitation_url;
  }
};

/// Members that are unknown or of other types declare nothing.
ClientCapabilities decode_client_capabilities(const json::object& declared);

/// The part of `declared` that a request of `method` with `params` needs, as the JSON text of a
/// ClientCapabilities object; empty if nothing is missing.
std::string missing_capabilities(const ClientCapabilities& declared, std::string_view method,
                                 const json::object& params);

}  // namespace sluice

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "json/json.hpp"
#include "rpc/message.hpp"

namespace sluice {

/// Looks up the header fields of one HTTP request by name.
class HeaderSource {
 public:
  struct Field {
    std::string_view value;  // of the first field
    std::size_t count = 0;   // how many fields have the name; 0: the field is absent
  };
  virtual ~HeaderSource() = default;
  /// Finds a field by its name, ignoring case.
  [[nodiscard]] virtual Field find(std::string_view name) const = 0;
};

inline constexpr std::string_view kVersionField = "MCP-Protocol-Version";

/// The header fields of an HTTP request that must mirror its body. For an absent field the view's
/// data() is null. Transports without headers have no MirroredHeaders.
struct MirroredHeaders {
  std::string_view protocol_version;  // MCP-Protocol-Version
  std::string_view method;            // Mcp-Method
  std::string_view name;              // Mcp-Name
  /// The name of a field above that is repeated, or empty. Of several, the version's is named.
  std::string_view repeated = {};
  /// All header fields, for those that mirror tool parameters; null if there are no others.
  const HeaderSource* all = nullptr;
  /// Whether an absent field is an error. A field that is present must match the body in either
  /// case.
  bool required = true;
};

/// Checks that `headers` mirror `message` (2026-07-28, Streamable HTTP, Server Validation).
/// `version` is the revision that the body names; its data() is null if the body names none. Error:
/// -32020 if a header is missing or does not match.
Result<void> check_mirrored_headers(const Message& message, const MirroredHeaders& headers,
                                    std::string_view version);

/// The parameter that Mcp-Name mirrors, for methods that have one.
std::optional<std::string_view> mirrored_parameter(std::string_view method);

/// Decodes the value of a header field, which may be in the Base64 form `=?base64?...?=`. Returns
/// nothing if that form is malformed, or if the value has characters that a header must not have.
std::optional<std::string> decode_header_value(std::string_view value);

/// Writes a value so that decode_header_value() returns it: as it is, or in the Base64 form if it
/// could not stand in a header, or looks like that form.
std::string encode_header_value(std::string_view value);

/// A tool parameter that HTTP requests mirror in a header field `Mcp-Param-...`, because its schema
/// has the annotation `x-mcp-header` (2026-07-28, Streamable HTTP, Custom Headers from Tool
/// Parameters).
struct ParameterHeader {
  enum class Type : std::uint8_t { string, integer, boolean };

  std::string field;              // the full name, spelled as in the schema
  std::vector<std::string> path;  // the member names that lead from the arguments to the parameter
  Type type;
};

/// Bytes of the names in these.
std::size_t bytes_of(const std::vector<ParameterHeader>& parameters);

/// Finds the mirrored parameters in a tool's input schema, in the schema's order. An Error says
/// which annotation breaks which rule: names must be unique tokens; parameters must be strings,
/// integers or booleans (or null) and reachable through `properties` alone.
Result<std::vector<ParameterHeader>> find_parameter_headers(const json::value& input_schema);

/// The header fields, by name and encoded value, that mirror `arguments` in a client's request.
std::vector<std::pair<std::string, std::string>> write_parameter_headers(
    const std::vector<ParameterHeader>& parameters, const json::object& arguments);

/// Checks that the header fields mirror `arguments`. A parameter that is present and not null must
/// have a field with its value, also if its type is not that of the schema. An array or an object
/// has no such field. Any other parameter must have no field. Error: -32020. Does nothing if
/// `headers` has no HeaderSource.
Result<void> check_parameter_headers(const std::vector<ParameterHeader>& parameters,
                                     const json::object& arguments, const MirroredHeaders& headers);

}  // namespace sluice

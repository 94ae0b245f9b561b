#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "json/json.hpp"
#include "rpc/message.hpp"

namespace sluice {

/// The header fields of one HTTP request, by name.
class HeaderSource {
 public:
  struct Field {
    std::string_view value;  // the first one's
    std::size_t count = 0;   // how often it came; 0: not there
  };
  virtual ~HeaderSource() = default;
  /// The field of that name in any case.
  [[nodiscard]] virtual Field find(std::string_view name) const = 0;
};

/// The header fields of an HTTP request that mirror its body; a view with data() == nullptr stands
/// for an absent field. Absent as a whole on transports without headers.
struct MirroredHeaders {
  std::string_view protocol_version;  // MCP-Protocol-Version
  std::string_view method;            // Mcp-Method
  std::string_view name;              // Mcp-Name
  /// The name of one of these that came more than once, or empty.
  std::string_view repeated = {};
  /// All fields, for the parameters of tools; null: there are no others.
  const HeaderSource* all = nullptr;
  /// Whether a field that should be there must be. Those that are there always say the same as the
  /// body.
  bool required = true;
};

/// Whether `headers` mirror `message`, which says in its body that it speaks `version` (2026-07-28,
/// Streamable HTTP, Server Validation). A view without data: it does not say. -32020 if not.
Result<void> check_mirrored_headers(const Message& message, const MirroredHeaders& headers,
                                    std::string_view version);

/// The parameter that Mcp-Name mirrors, for the methods that have one.
std::optional<std::string_view> mirrored_parameter(std::string_view method);

/// The value of a header field that may use the Base64 form `=?base64?...?=`; nothing if that form
/// is used and broken, or the value has characters a header must not have.
std::optional<std::string> decode_header_value(std::string_view value);

/// A parameter of a tool that HTTP requests mirror in a header field `Mcp-Param-...`, because its
/// schema has the annotation `x-mcp-header` (2026-07-28, Streamable HTTP, Custom Headers from Tool
/// Parameters).
struct ParameterHeader {
  enum class Type : std::uint8_t { string, integer, boolean };

  std::string field;              // the whole name, spelled as in the schema
  std::vector<std::string> path;  // from the arguments to the parameter, member by member
  Type type;
};

/// The mirrored parameters of a tool with that input schema, in the schema's order. The Error says
/// which annotation breaks the rules, and how: names are unique tokens, and parameters strings,
/// integers or booleans (or null) that are reached through `properties` alone.
Result<std::vector<ParameterHeader>> find_parameter_headers(const json::value& input_schema);

/// Whether `fields` mirror `arguments`: a parameter that is there and not null has its field, with
/// its value, and one that is not has none. Values of other types than the schema allows are left
/// to its check. -32020 if not. Does nothing without HeaderSource.
Result<void> check_parameter_headers(const std::vector<ParameterHeader>& parameters,
                                     const json::object& arguments, const MirroredHeaders& headers);

}  // namespace sluice

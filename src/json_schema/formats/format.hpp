#pragma once

#include <cstdint>
#include <string_view>

namespace sluice {

/// The formats that can be checked (JSON Schema Validation section 7.3); `none` stands for all
/// others.
enum class JsonFormat : std::uint8_t {
  none,
  date_time,
  date,
  time,
  duration,
  email,
  idn_email,
  hostname,
  ipv4,
  ipv6,
  uri,
  uri_reference,
  iri,
  iri_reference,
  uri_template,
  uuid,
  json_pointer,
  relative_json_pointer,
  regex,
};

JsonFormat json_format(std::string_view name);

/// The format's name in a schema.
std::string_view json_format_name(JsonFormat format);

/// Whether `text`, which must be valid UTF-8, has the format. Takes time linear in its size.
bool has_json_format(std::string_view text, JsonFormat format);

}  // namespace sluice

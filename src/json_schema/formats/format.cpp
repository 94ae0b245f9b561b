#include "json_schema/formats/format.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "core/text/text.hpp"
#include "json_schema/formats/ecma.hpp"
#include "json_schema/formats/uri.hpp"

namespace sluice {
namespace {

constexpr std::array<std::pair<std::string_view, JsonFormat>, 18> kFormats{{
    {"date-time", JsonFormat::date_time},
    {"date", JsonFormat::date},
    {"time", JsonFormat::time},
    {"duration", JsonFormat::duration},
    {"email", JsonFormat::email},
    {"idn-email", JsonFormat::idn_email},
    {"hostname", JsonFormat::hostname},
    {"ipv4", JsonFormat::ipv4},
    {"ipv6", JsonFormat::ipv6},
    {"uri", JsonFormat::uri},
    {"uri-reference", JsonFormat::uri_reference},
    {"iri", JsonFormat::iri},
    {"iri-reference", JsonFormat::iri_reference},
    {"uri-template", JsonFormat::uri_template},
    {"uuid", JsonFormat::uuid},
    {"json-pointer", JsonFormat::json_pointer},
    {"relative-json-pointer", JsonFormat::relative_json_pointer},
    {"regex", JsonFormat::regex},
}};

bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/// Reads a text from left to right.
struct Reader {
  std::string_view text;

  bool done() const { return text.empty(); }

  bool take(char c) {
    if (!text.starts_with(c)) return false;
    text.remove_prefix(1);
    return true;
  }

  bool take_any(std::string_view set) {
    if (text.empty() || !set.contains(text.front())) return false;
    text.remove_prefix(1);
    return true;
  }

  /// Reads exactly `count` digits. Returns -1 if they are not there.
  int number(std::size_t count) {
    if (text.size() < count || !std::ranges::all_of(text.substr(0, count), is_digit)) return -1;
    int value = 0;
    for (const char c : text.substr(0, count)) value = value * 10 + (c - '0');
    text.remove_prefix(count);
    return value;
  }

  /// Reads all digits at this position and returns how many there were.
  std::size_t digits() {
    const auto end = std::ranges::find_if_not(text, is_digit);
    const auto count = static_cast<std::size_t>(end - text.begin());
    text.remove_prefix(count);
    return count;
  }
};

/// RFC 3339 full-date.
bool take_date(Reader& in) {
  const int year = in.number(4);
  if (year < 0 || !in.take('-')) return false;
  const int month = in.number(2);
  if (month < 1 || month > 12 || !in.take('-')) return false;
  constexpr std::array<int, 12> kDays{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  const int last = kDays[static_cast<std::size_t>(month - 1)] + (leap && month == 2 ? 1 : 0);
  const int day = in.number(2);
  return day >= 1 && day <= last;
}

/// RFC 3339 full-time. A leap second is allowed only at 23:59:60 UTC.
bool take_time(Reader& in) {
  const int hour = in.number(2);
  if (hour < 0 || hour > 23 || !in.take(':')) return false;
  const int minute = in.number(2);
  if (minute < 0 || minute > 59 || !in.take(':')) return false;
  const int second = in.number(2);
  if (second < 0 || second > 60) return false;
  if (in.take('.') && in.digits() == 0) return false;

  constexpr int kMinutesOfDay = 24 * 60;
  int utc = hour * 60 + minute;
  if (!in.take_any("zZ")) {
    const bool ahead = in.take('+');
    if (!ahead && !in.take('-')) return false;
    const int offset_hour = in.number(2);
    if (offset_hour < 0 || offset_hour > 23 || !in.take(':')) return false;
    const int offset_minute = in.number(2);
    if (offset_minute < 0 || offset_minute > 59) return false;
    const int offset = offset_hour * 60 + offset_minute;
    utc = (utc + (ahead ? -offset : offset) + kMinutesOfDay) % kMinutesOfDay;
  }
  return second < 60 || utc == kMinutesOfDay - 1;
}

bool is_date(std::string_view text) {
  Reader in{text};
  return take_date(in) && in.done();
}

bool is_time(std::string_view text) {
  Reader in{text};
  return take_time(in) && in.done();
}

bool is_date_time(std::string_view text) {
  Reader in{text};
  return take_date(in) && in.take_any("tT") && take_time(in) && in.done();
}

/// Reads numbers, each followed by a unit, in the order of `units`. No unit may be skipped between
/// two that are used: RFC 3339 appendix A refuses "P1Y1D".
bool take_units(Reader& in, std::string_view units) {
  std::size_t next = 0;
  bool any = false;
  while (!in.done() && is_digit(in.text.front())) {
    in.digits();
    if (in.done()) return false;
    const std::size_t unit = units.find(in.text.front(), next);
    if (unit == std::string_view::npos || (any && unit != next)) return false;
    in.text.remove_prefix(1);
    next = unit + 1;
    any = true;
  }
  return any;
}

bool is_duration(std::string_view text) {
  Reader in{text};
  if (!in.take('P')) return false;
  if (text.ends_with('W')) {
    return in.digits() > 0 && in.take('W') && in.done();
  }
  if (!in.text.starts_with('T') && !take_units(in, "YMD")) return false;
  return in.done() || (in.take('T') && take_units(in, "HMS") && in.done());
}

/// RFC 1123 section 2.1, RFC 5891: letters, digits and inner hyphens.
bool is_hostname(std::string_view text) {
  constexpr std::size_t kMaxName = 253;
  constexpr std::size_t kMaxLabel = 63;
  if (text.empty() || text.size() > kMaxName) return false;
  while (true) {
    const std::string_view label = text.substr(0, text.find('.'));
    if (label.empty() || label.size() > kMaxLabel) return false;
    if (label.front() == '-' || label.back() == '-') return false;
    if (!std::ranges::all_of(label,
                             [](char c) { return is_letter(c) || is_digit(c) || c == '-'; })) {
      return false;
    }
    if (label.size() == text.size()) return true;
    text.remove_prefix(label.size() + 1);
  }
}

/// RFC 2673 section 3.2. Leading zeros are refused, because some programs read them as octal.
bool is_ipv4(std::string_view text) {
  Reader in{text};
  for (int part = 0; part < 4; ++part) {
    if (part != 0 && !in.take('.')) return false;
    const std::string_view rest = in.text;
    const std::size_t count = in.digits();
    if (count == 0 || count > 3 || (count > 1 && rest.front() == '0')) return false;
    Reader digits{rest};
    if (digits.number(count) > 255) return false;
  }
  return in.done();
}

/// RFC 4291 section 2.2, without a zone.
bool is_ipv6(std::string_view text) {
  std::size_t groups = 0;
  bool gap = false;
  if (text.starts_with("::")) {
    gap = true;
    text.remove_prefix(2);
  }
  while (!text.empty()) {
    const std::string_view group = text.substr(0, text.find(':'));
    if (group.size() == text.size() && group.contains('.')) {
      if (!is_ipv4(group)) return false;
      groups += 2;
      break;
    }
    if (group.empty() || group.size() > 4 || !std::ranges::all_of(group, is_hex)) return false;
    ++groups;
    text.remove_prefix(group.size());
    if (text.empty()) break;
    text.remove_prefix(1);
    if (text.empty()) return false;  // a single colon at the end
    if (text.front() == ':') {
      if (gap) return false;
      gap = true;
      text.remove_prefix(1);
    }
  }
  return gap ? groups < 8 : groups == 8;
}

/// RFC 5321 section 4.1.2. Characters beyond ASCII are allowed only if `international` (RFC 6531).
bool is_email(std::string_view text, bool international) {
  const std::size_t at = text.rfind('@');
  if (at == std::string_view::npos || at == 0) return false;
  const std::string_view local = text.substr(0, at);
  const std::string_view domain = text.substr(at + 1);
  const auto allowed = [international](char c) {
    return is_ascii(c) ? c > ' ' && c < 0x7F : international;
  };

  if (local.size() >= 2 && local.front() == '"' && local.back() == '"') {
    const std::string_view inside = local.substr(1, local.size() - 2);
    for (std::size_t i = 0; i < inside.size(); ++i) {
      if (inside[i] == '"') return false;
      if (inside[i] == '\\' && ++i == inside.size()) return false;
      if (inside[i] != ' ' && !allowed(inside[i])) return false;
    }
  } else {
    if (local.front() == '.' || local.back() == '.' || local.contains("..")) return false;
    constexpr std::string_view kSpecial = "\"(),:;<>@[\\]";
    if (!std::ranges::all_of(local, [&](char c) { return allowed(c) && !kSpecial.contains(c); })) {
      return false;
    }
  }

  if (domain.starts_with('[') && domain.ends_with(']')) {
    std::string_view address = domain.substr(1, domain.size() - 2);
    constexpr std::string_view kIpv6 = "IPv6:";
    if (!address.starts_with(kIpv6)) return is_ipv4(address);
    address.remove_prefix(kIpv6.size());
    return is_ipv6(address);
  }
  if (!international || std::ranges::all_of(domain, is_ascii)) return is_hostname(domain);
  return !domain.empty() && !domain.starts_with('.') && !domain.ends_with('.') &&
         !domain.contains("..") && std::ranges::all_of(domain, allowed);
}

/// RFC 4122 section 3: 8-4-4-4-12 hexadecimal digits.
bool is_uuid(std::string_view text) {
  constexpr std::size_t kSize = 36;
  if (text.size() != kSize) return false;
  for (std::size_t i = 0; i < kSize; ++i) {
    const bool hyphen = i == 8 || i == 13 || i == 18 || i == 23;
    if (hyphen ? text[i] != '-' : !is_hex(text[i])) return false;
  }
  return true;
}

constexpr std::string_view kUnreserved = "-._~";
constexpr std::string_view kSubDelimiters = "!$&'()*+,;=";

/// Whether `text` has only percent-encodings, unreserved characters, sub-delimiters and characters
/// in `more`. Characters beyond ASCII are allowed only in an IRI.
bool has_uri_characters(std::string_view text, std::string_view more, bool iri) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '%') {
      if (text.size() - i < 3 || !is_hex(text[i + 1]) || !is_hex(text[i + 2])) return false;
      i += 2;
    } else if (!is_letter(c) && !is_digit(c) && !kUnreserved.contains(c) &&
               !kSubDelimiters.contains(c) && !more.contains(c) && (is_ascii(c) || !iri)) {
      return false;
    }
  }
  return true;
}

bool is_authority(std::string_view authority, bool iri) {
  if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
    if (!has_uri_characters(authority.substr(0, at), ":", iri)) return false;
    authority.remove_prefix(at + 1);
  }
  if (authority.starts_with('[')) {
    const std::size_t close = authority.find(']');
    if (close == std::string_view::npos) return false;
    const std::string_view address = authority.substr(1, close - 1);
    // Nobody uses IPvFuture, but its characters are checked.
    if (!is_ipv6(address) &&
        !(address.starts_with('v') && has_uri_characters(address, ":", false))) {
      return false;
    }
    authority.remove_prefix(close + 1);
    if (!authority.empty() && authority.front() != ':') return false;
  } else {
    const std::string_view host = authority.substr(0, authority.find(':'));
    if (!has_uri_characters(host, "", iri)) return false;
    authority.remove_prefix(host.size());
  }
  return authority.empty() || std::ranges::all_of(authority.substr(1), is_digit);
}

/// RFC 3986, or RFC 3987 for an IRI.
bool is_uri_reference(std::string_view text, bool absolute, bool iri) {
  const UriParts parts = split_uri(text);
  if (absolute && !parts.scheme) return false;
  if (parts.authority && !is_authority(*parts.authority, iri)) return false;
  // Without a scheme, the first segment must not contain a colon, which would end a scheme.
  if (!parts.scheme && !parts.authority &&
      parts.path.substr(0, parts.path.find('/')).contains(':')) {
    return false;
  }
  return has_uri_characters(parts.path, ":@/", iri) &&
         (!parts.query || has_uri_characters(*parts.query, ":@/?", iri)) &&
         (!parts.fragment || has_uri_characters(*parts.fragment, ":@/?", iri));
}

/// RFC 6570 section 2: one expression, without its braces.
bool is_template_expression(std::string_view text) {
  constexpr std::string_view kOperators = "+#./;?&=,!@|";
  if (!text.empty() && kOperators.contains(text.front())) text.remove_prefix(1);
  while (true) {
    std::string_view variable = text.substr(0, text.find(','));
    const bool last = variable.size() == text.size();
    if (!last) text.remove_prefix(variable.size() + 1);
    if (variable.ends_with('*')) {
      variable.remove_suffix(1);
    } else if (const std::size_t colon = variable.find(':'); colon != std::string_view::npos) {
      const std::string_view length = variable.substr(colon + 1);
      if (length.empty() || length.size() > 4 || length.front() == '0' ||
          !std::ranges::all_of(length, is_digit)) {
        return false;
      }
      variable = variable.substr(0, colon);
    }
    if (variable.empty() || variable.front() == '.' || variable.back() == '.' ||
        variable.contains("..")) {
      return false;
    }
    for (std::size_t i = 0; i < variable.size(); ++i) {
      const char c = variable[i];
      if (c == '%') {
        if (variable.size() - i < 3 || !is_hex(variable[i + 1]) || !is_hex(variable[i + 2])) {
          return false;
        }
        i += 2;
      } else if (!is_letter(c) && !is_digit(c) && c != '_' && c != '.') {
        return false;
      }
    }
    if (last) return true;
  }
}

bool is_uri_template(std::string_view text) {
  constexpr std::string_view kForbidden = "\"'<>\\^`{|}";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '{') {
      const std::size_t close = text.find('}', i);
      if (close == std::string_view::npos ||
          !is_template_expression(text.substr(i + 1, close - i - 1))) {
        return false;
      }
      i = close;
    } else if (c == '%') {
      if (text.size() - i < 3 || !is_hex(text[i + 1]) || !is_hex(text[i + 2])) return false;
      i += 2;
    } else if (is_ascii(c) && (c <= ' ' || c == 0x7F || kForbidden.contains(c))) {
      return false;
    }
  }
  return true;
}

/// RFC 6901 section 3.
bool is_json_pointer(std::string_view text) {
  if (!text.empty() && text.front() != '/') return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '~') continue;
    if (++i == text.size() || (text[i] != '0' && text[i] != '1')) return false;
  }
  return true;
}

bool is_relative_json_pointer(std::string_view text) {
  Reader in{text};
  const std::size_t count = in.digits();
  if (count == 0 || (count > 1 && text.front() == '0')) return false;
  return in.text == "#" || is_json_pointer(in.text);
}

}  // namespace

JsonFormat json_format(std::string_view name) {
  for (const auto& [known, format] : kFormats) {
    if (known == name) return format;
  }
  return JsonFormat::none;
}

std::string_view json_format_name(JsonFormat format) {
  for (const auto& [name, known] : kFormats) {
    if (known == format) return name;
  }
  return {};
}

bool has_json_format(std::string_view text, JsonFormat format) {
  switch (format) {
    case JsonFormat::none:
      return true;
    case JsonFormat::date_time:
      return is_date_time(text);
    case JsonFormat::date:
      return is_date(text);
    case JsonFormat::time:
      return is_time(text);
    case JsonFormat::duration:
      return is_duration(text);
    case JsonFormat::email:
      return is_email(text, false);
    case JsonFormat::idn_email:
      return is_email(text, true);
    case JsonFormat::hostname:
      return is_hostname(text);
    case JsonFormat::ipv4:
      return is_ipv4(text);
    case JsonFormat::ipv6:
      return is_ipv6(text);
    case JsonFormat::uri:
      return is_uri_reference(text, true, false);
    case JsonFormat::uri_reference:
      return is_uri_reference(text, false, false);
    case JsonFormat::iri:
      return is_uri_reference(text, true, true);
    case JsonFormat::iri_reference:
      return is_uri_reference(text, false, true);
    case JsonFormat::uri_template:
      return is_uri_template(text);
    case JsonFormat::uuid:
      return is_uuid(text);
    case JsonFormat::json_pointer:
      return is_json_pointer(text);
    case JsonFormat::relative_json_pointer:
      return is_relative_json_pointer(text);
    case JsonFormat::regex:
      return translate_ecma_regex(text).has_value();
  }
  return true;
}

}  // namespace sluice

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "json/json.hpp"

namespace sluice {

// How the features of several servers are told apart behind one proxy. Each server has a prefix. A
// tool or a prompt `search` of the server `docs` becomes `docs_search`; a resource at `file:///a`
// becomes `docs+file:///a`, whose scheme is still a valid one (RFC 3986, section 3.1). A `ui:` URI
// keeps its scheme, by which hosts know it: `ui://docs+chart`. In a URI the prefix is in lower
// case, and is known in any, because clients may write schemes and hosts as they like: so the
// prefixes of servers must differ in more than case. A prefix has neither `_` nor `+`, so a name
// says by itself which server it belongs to, whatever servers are added. With an empty prefix
// everything stays as it is.

/// The longest prefix.
inline constexpr std::size_t kMaxPrefix = 32;

/// Whether `text` can be a prefix: a letter, then letters, digits and "-", at most kMaxPrefix.
bool is_prefix(std::string_view text);
/// The prefix for a server that is called `name`: what cannot be in one becomes "-". Empty if that
/// is no prefix either.
std::string prefix_of(std::string_view name);

std::string prefixed_name(std::string_view prefix, std::string_view name);
std::string prefixed_uri(std::string_view prefix, std::string_view uri);

/// A name or a URI without its prefix.
struct OwnName {
  std::string prefix;
  std::string name;
};
/// Nothing if there is no prefix in it. The prefix of a URI is as it was written.
std::optional<OwnName> split_prefixed_name(std::string_view name);
std::optional<OwnName> split_prefixed_uri(std::string_view uri);

/// Whether the params of `method` have a name or a URI of something that a server has.
bool names_a_feature(std::string_view method, json::object& params);

/// Takes the prefix out of the name or the URI in the params of `method`, and returns it. Empty if
/// there is none.
std::string take_prefix(std::string_view method, json::object& params);
/// Puts the prefix into all names and URIs of a result of `method` that lead back to the server.
void add_prefix(std::string_view prefix, std::string_view method, json::object& result);

}  // namespace sluice

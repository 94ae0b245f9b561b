#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "json/json.hpp"

namespace sluice {

// Several servers as one.

/// What one of them has answered.
struct PartAnswer {
  std::string prefix;
  json::object answer;
};

/// The name of the list in a result of `method`, such as "tools" of tools/list; empty for methods
/// that list nothing.
std::string_view list_of(std::string_view method);
/// The capability that a server with such a list declares.
std::string_view capability_of(std::string_view method);

/// One page of a list: the entries of all pages, whose names must have their prefixes. Its cursor
/// has those of the servers that have more. An empty one is missing, so that the merged page is
/// neither fresh nor public.
json::object merge_pages(std::string_view method, std::vector<PartAnswer> pages);
/// The cursors by the prefixes of their servers, as far as there is such a server. Error: -32602
/// for a cursor of no merged page of these servers.
Result<std::map<std::string, std::string>> cursors_in(
    std::string_view cursor, const std::function<bool(std::string_view prefix)>& is_known);

/// The descriptions of servers (results of `initialize` or `server/discover`) as one, with the
/// capabilities of all, and with the instructions of each under its prefix.
json::object merge_descriptions(const std::vector<PartAnswer>& descriptions);

}  // namespace sluice

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/doctor/report/check.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "json/json.hpp"
#include "protocol/revision.hpp"

namespace sluice {

/// A list of the server, with all of its pages.
struct ListFacts {
  std::vector<json::object> pages = {};  // the results; at most kMaxPages
  json::array entries = {};
  std::optional<Error> problem = {};  // why a page is missing
  bool is_endless = false;            // there are more than kMaxPages, or a cursor comes again
  std::size_t bytes = 0;
  Duration took{};

  static constexpr std::size_t kMaxPages = 20;
};

/// What a server offers, over any transport. Belongs to one thread.
struct Features {
  /// Sends a request, and waits for its result.
  using Request = std::function<Result<json::object>(std::string_view method, json::object params)>;

  const Revision* revision = nullptr;  // that is spoken
  json::object about = {};             // the result of initialize or server/discover
  Request request = {};
  bool is_http = false;

  // Nothing: the server does not declare the capability.
  std::optional<ListFacts> tools = {};
  std::optional<ListFacts> prompts = {};
  std::optional<ListFacts> resources = {};
  std::optional<ListFacts> templates = {};
};

/// The method of a list that the server must have, as `about` declares it; empty: there is none.
std::string_view declared_list(const json::object& about);

/// Reads the lists of what the server declares, and examines them. Calls no tools.
void examine_features(Features& features, Checks& out);

}  // namespace sluice

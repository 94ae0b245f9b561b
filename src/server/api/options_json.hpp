#pragma once

#include <string>
#include <vector>

#include "server/catalog/definition.hpp"
#include "sluice/content.hpp"
#include "sluice/json.hpp"
#include "sluice/server.hpp"

namespace sluice {

// The options of a sluice::Server's entries as JSON text. Empty if there is nothing to send.

std::string text_or_nothing(const json::value& value);
std::string text_or_nothing(const json::object& object);
/// Throws std::invalid_argument for an object that clients could not read.
std::string meta_json(const json::object& meta);
std::string annotations_json(const ToolAnnotations& annotations);
std::string annotations_json(const ContentAnnotations& annotations);
std::string icons_json(const std::vector<Icon>& icons);

template <class Options>
Metadata metadata_of(const Options& options) {
  return {
      .title = options.title, .icons = icons_json(options.icons), .meta = meta_json(options.meta)};
}

}  // namespace sluice

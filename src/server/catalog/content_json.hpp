#pragma once

#include <string>

#include "sluice/content.hpp"

namespace sluice {

/// The most levels of a `_meta`.
inline constexpr std::size_t kMaxMetaDepth = 100;

/// The members of a `_meta` as JSON text, without those that the server writes itself. Empty if
/// there are none, or if it is nested deeper, which is logged.
std::string meta_members(const json::object& meta);

/// Appends `contents` as TextResourceContents or BlobResourceContents.
void append_resource_contents(std::string& out, const ResourceContents& contents);

}  // namespace sluice

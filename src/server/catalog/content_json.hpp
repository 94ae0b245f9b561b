#pragma once

#include <string>

#include "sluice/content.hpp"

namespace sluice {

/// Appends `contents` as TextResourceContents or BlobResourceContents.
void append_resource_contents(std::string& out, const ResourceContents& contents);

}  // namespace sluice

#pragma once

#include <cstddef>
#include <string_view>

#include "core/error.hpp"
#include "json/json.hpp"

namespace sluice {

/// Parses the YAML frontmatter of a document such as a skill's SKILL.md: the part at the beginning
/// of `text` between two lines `---`.
///
/// It reads the parts of YAML 1.2 (core schema) that are usual in frontmatter: block mappings and
/// block sequences; scalars that are plain (also over several lines), quoted, or in the block forms
/// `|` and `>`; sequences of scalars in brackets; comments. Anything else, such as tags, anchors
/// and braces, is an Error (-32602) that names its line; it is never misread. At most
/// kMaxFrontmatter bytes and kMaxFrontmatterDepth levels.
/// kMaxFrontmatterDepth deep.
Result<json::object> parse_frontmatter(std::string_view text);

inline constexpr std::size_t kMaxFrontmatter = std::size_t{64} << 10U;
inline constexpr std::size_t kMaxFrontmatterDepth = 16;

}  // namespace sluice

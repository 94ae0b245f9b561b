#pragma once

#include <cstddef>
#include <string_view>

#include "core/error.hpp"
#include "json/json.hpp"

namespace sluice {

/// The YAML frontmatter of a document such as a skill's SKILL.md, as JSON: what stands between the
/// lines `---` at the beginning of `text`.
///
/// Of YAML 1.2 (core schema) it reads what frontmatter is made of: mappings and sequences in block
/// form, scalars plain (also over several lines), quoted and in the block forms `|` and `>`,
/// sequences of scalars in brackets, comments. Anything else - tags, anchors, braces - is an Error
/// (-32602) that names its line, never read wrong. At most kMaxFrontmatter bytes, and
/// kMaxFrontmatterDepth deep.
Result<json::object> parse_frontmatter(std::string_view text);

inline constexpr std::size_t kMaxFrontmatter = std::size_t{64} << 10U;
inline constexpr std::size_t kMaxFrontmatterDepth = 16;

}  // namespace sluice

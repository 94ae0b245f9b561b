#pragma once

#include <cstddef>
#include <string_view>

#include "core/error.hpp"
#include "json/json.hpp"

namespace sluice {

/// Parses the YAML frontmatter of a document such as a skill's SKILL.md: the part at the beginning
/// of `text` between two lines `---`.
///
/// Plain scalars follow the core schema of YAML 1.2. Aliases become copies. Names are texts, and
/// each appears once in its mapping. The only tag is `!!str`. An Error (-32602) names the line and
/// says what is wrong with it. At most kMaxFrontmatter bytes, which what aliases repeat may not
/// exceed either, and kMaxFrontmatterDepth levels. An empty frontmatter is an empty object.
Result<json::object> parse_frontmatter(std::string_view text);

inline constexpr std::size_t kMaxFrontmatter = std::size_t{64} << 10U;
inline constexpr std::size_t kMaxFrontmatterDepth = 16;

}  // namespace sluice

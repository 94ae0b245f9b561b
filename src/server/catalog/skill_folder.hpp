#pragma once

#include <filesystem>
#include <vector>

#include "core/error.hpp"
#include "server/catalog/skills.hpp"

namespace sluice {

/// The skills below a directory, by path: each folder with a SKILL.md is one, with all that is in
/// it. Files and folders whose names begin with a dot are passed over. Errors: what cannot be read,
/// symbolic links and other things that are no files, and those of Skill::make(), with the path.
/// Nothing outside the directory is read, whatever happens in it meanwhile.
Result<std::vector<Skill>> read_skills(const std::filesystem::path& directory);

}  // namespace sluice

#pragma once

#include <filesystem>
#include <vector>

#include "core/error.hpp"
#include "server/catalog/skills.hpp"

namespace sluice {

/// Reads the skills below a directory, in the order of their paths. Each folder with a SKILL.md is
/// a skill, with everything in it. Files and folders whose names begin with a dot are skipped.
/// Errors, with the path: something cannot be read, a skill contains a symbolic link or anything
/// else that is not a file or a folder, or those of Skill::make(). Nothing outside the directory is
/// read, even if the directory changes meanwhile.
Result<std::vector<Skill>> read_skills(const std::filesystem::path& directory);

}  // namespace sluice

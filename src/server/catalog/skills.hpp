#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"

namespace sluice {

struct Resource;
struct ServerDefinition;

/// A skill: instructions for a model and the files that they refer to, served as resources (the
/// extension io.modelcontextprotocol/skills, SEP-2640). Immutable.
class Skill {
 public:
  /// A file as its author wrote it: its path within the skill, such as `references/FORMS.md`, and
  /// its bytes.
  struct Source {
    std::string path;
    std::string content;
  };
  struct File {
    std::string path;
    std::string uri;
    std::string mime_type;
    std::shared_ptr<const std::string> content;
  };

  static constexpr std::string_view kManifest = "SKILL.md";
  // Limits that servers should not exceed (SEP-2640, Limits).
  static constexpr std::size_t kMaxFiles = 512;
  static constexpr std::size_t kMaxBytes = std::size_t{16} << 20U;

  /// Makes the skill at `path`, such as `acme/refunds`. The last segment is the name of the skill.
  /// One of `files` must be SKILL.md; its frontmatter must have a `description`, and a `name` that
  /// is the name of the skill. The paths of the files must be relative, stay within the skill and
  /// differ from each other. Error: -32602 says which of these rules or limits is broken.
  static Result<Skill> make(std::string_view path, std::vector<Source> files);

  /// The URI of its SKILL.md, such as `skill://acme/refunds/SKILL.md`.
  [[nodiscard]] const std::string& uri() const { return files_.front().uri; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& description() const { return description_; }
  /// SKILL.md is the first; the others are sorted by path.
  [[nodiscard]] const std::vector<File>& files() const { return files_; }
  /// The skill as an entry of skills/list: JSON text of {uri, frontmatter, resources}.
  [[nodiscard]] const std::string& entry() const { return entry_; }

 private:
  Skill() = default;

  std::string name_;
  std::string description_;
  std::vector<File> files_;
  std::string entry_;
};

/// Adds `skills` to `definition`, and their files as resources. Error: -32602 if there is already a
/// resource with the URI of a file, or if two files have one URI; nothing is added then.
Result<void> offer_skills(ServerDefinition& definition, std::vector<Skill> skills);

/// If `uri` is that of the SKILL.md of a skill, moves the resources of the skill to `removed`, and
/// returns true. Error: -32602 if it is that of another file of a skill.
Result<bool> withdraw_skill(ServerDefinition& definition, std::string_view uri,
                            std::vector<Resource>& removed);

/// The members of the result of resources/directory/read for `uri`, a folder of a skill: its direct
/// children as resources, where folders have the type inode/directory. Error: -32602 if `uri` is
/// not such a folder.
Result<std::string> read_skill_directory(const ServerDefinition& definition, std::string_view uri);

}  // namespace sluice

#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"

namespace sluice {

struct ServerDefinition;

/// A skill: instructions for a model and the files they speak of, served as resources (the
/// extension io.modelcontextprotocol/skills, SEP-2640). Immutable.
class Skill {
 public:
  /// A file as its author has it: the path within the skill (`references/FORMS.md`) and its bytes.
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
  // What servers should not exceed (SEP-2640, Limits).
  static constexpr std::size_t kMaxFiles = 512;
  static constexpr std::size_t kMaxBytes = std::size_t{16} << 20U;

  /// The skill at `path` (`acme/refunds`: segments, the last one its name), whose files are
  /// `files`. Errors (-32602) say what is wrong: there must be a SKILL.md whose frontmatter has a
  /// `description` and, as `name`, the last segment; paths must lead to one file each, within the
  /// skill; the limits must be kept.
  static Result<Skill> make(std::string_view path, std::vector<Source> files);

  /// That of its SKILL.md: `skill://acme/refunds/SKILL.md`.
  [[nodiscard]] const std::string& uri() const { return files_.front().uri; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& description() const { return description_; }
  /// SKILL.md first, the others by path.
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

/// Makes `definition` offer `skills`: as such, and their files as resources. -32602 if one of them
/// is there already.
Result<void> offer_skills(ServerDefinition& definition, std::vector<Skill> skills);

/// The members of the result of resources/directory/read {uri} on a folder of a skill: its direct
/// children as resources, folders of the type inode/directory. -32602 for what is none.
Result<std::string> read_skill_directory(const ServerDefinition& definition, std::string_view uri);

}  // namespace sluice

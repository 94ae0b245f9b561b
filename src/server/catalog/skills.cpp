#include "server/catalog/skills.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "core/crypto/digest.hpp"
#include "core/text/percent_encoding.hpp"
#include "core/text/utf8.hpp"
#include "json/json.hpp"
#include "protocol/syntax/frontmatter.hpp"
#include "rpc/error_codes.hpp"
#include "server/catalog/definition.hpp"

namespace sluice {
namespace {

constexpr std::string_view kScheme = "skill://";
constexpr std::string_view kDirectoryType = "inode/directory";
constexpr std::size_t kMaxName = 64;

std::unexpected<Error> invalid(std::string_view where, const std::string& why) {
  return fail(kInvalidParams, "Skill '" + std::string(where) + "': " + why);
}

std::string mime_type_of(const std::string& path, std::string_view content) {
  static const std::map<std::string, std::string_view, std::less<>> kTypes = {
      {".css", "text/css"},         {".csv", "text/csv"},          {".gif", "image/gif"},
      {".html", "text/html"},       {".jpeg", "image/jpeg"},       {".jpg", "image/jpeg"},
      {".js", "text/javascript"},   {".json", "application/json"}, {".md", "text/markdown"},
      {".pdf", "application/pdf"},  {".png", "image/png"},         {".py", "text/x-python"},
      {".sh", "application/x-sh"},  {".svg", "image/svg+xml"},     {".toml", "application/toml"},
      {".webp", "image/webp"},      {".xml", "application/xml"},   {".yaml", "application/yaml"},
      {".yml", "application/yaml"}, {".zip", "application/zip"}};
  const auto found = kTypes.find(std::filesystem::path(path).extension().string());
  if (found != kTypes.end()) return std::string(found->second);
  return is_valid_utf8(content) ? "text/plain" : "application/octet-stream";
}

/// Whether `name` follows the rules of Agent Skills.
bool is_skill_name(std::string_view name) {
  const auto letter_or_digit = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  };
  return !name.empty() && name.size() <= kMaxName && letter_or_digit(name.front()) &&
         letter_or_digit(name.back()) && name.find("--") == std::string_view::npos &&
         std::ranges::all_of(name, [&](char c) { return letter_or_digit(c) || c == '-'; });
}

/// Whether `path` is UTF-8 without NUL and consists of segments with '/' between them, none of them
/// empty, "." or "..".
bool is_relative_path(std::string_view path) {
  if (!is_valid_utf8(path)) return false;
  for (;;) {
    const std::size_t end = path.find('/');
    const std::string_view segment = path.substr(0, end);
    if (segment.empty() || segment == "." || segment == "..") return false;
    if (segment.find('\0') != std::string_view::npos) return false;
    if (end == std::string_view::npos) return true;
    path.remove_prefix(end + 1);
  }
}

/// Appends `path` to a URI. Percent-encodes each segment.
void append_path(std::string& uri, std::string_view path) {
  for (;;) {
    const std::size_t end = path.find('/');
    append_percent_encoded(uri, path.substr(0, end));
    if (end == std::string_view::npos) return;
    uri.push_back('/');
    path.remove_prefix(end + 1);
  }
}

/// The string at `key` of a frontmatter, or an empty one.
std::string frontmatter_text(const json::object& frontmatter, std::string_view key) {
  const json::value* const value = frontmatter.if_contains(key);
  return value == nullptr || !value->is_string() ? std::string() : std::string(value->get_string());
}

std::string entry_of(const json::object& frontmatter, const std::vector<Skill::File>& files) {
  std::string out = R"({"uri":)";
  append_json_string(out, files.front().uri);
  out.append(R"(,"frontmatter":)").append(to_json(frontmatter)).append(R"(,"resources":[)");
  for (const Skill::File& file : files) {
    if (out.back() != '[') out.push_back(',');
    out.append(R"({"uri":)");
    append_json_string(out, file.uri);
    out.append(R"(,"digest":"sha256:)").append(sha256_hex(*file.content)).append(R"(","size":)");
    append_number(out, file.content->size());
    out.push_back('}');
  }
  return out.append("]}");
}

Resource resource_of(const Skill& skill, const Skill::File& file) {
  const bool manifest = file.path == Skill::kManifest;
  return {.uri = file.uri,
          .name = manifest ? skill.name() : skill.name() + "/" + file.path,
          .description = manifest ? skill.description() : std::string(),
          .mime_type = file.mime_type,
          .read = [file](const std::string&) -> Result<ResourceResult> {
            return ResourceResult{.contents = {{.uri = file.uri,
                                                .mime_type = file.mime_type,
                                                .data = *file.content,
                                                .binary = !is_valid_utf8(*file.content)}}};
          },
          .size = file.content->size()};
}

void append_child(std::string& out, std::string_view uri, std::string_view name,
                  std::string_view mime_type) {
  if (out.back() != '[') out.push_back(',');
  out.append(R"({"uri":)");
  append_json_string(out, uri);
  out.append(R"(,"name":)");
  append_json_string(out, name);
  out.append(R"(,"mimeType":)");
  append_json_string(out, mime_type);
  out.push_back('}');
}

}  // namespace

Result<Skill> Skill::make(std::string_view path, std::vector<Source> files) {
  if (!is_relative_path(path)) return invalid(path, "this is no path");
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (!is_skill_name(name)) {
    return invalid(path, "its name must be 1 to 64 of a-z, 0-9 and single hyphens between them");
  }
  if (files.size() > kMaxFiles) return invalid(path, "there are more than 512 files");
  std::ranges::sort(files, {}, [](const Source& file) {
    return std::pair(file.path != kManifest, std::string_view(file.path));
  });
  if (files.empty() || files.front().path != kManifest) return invalid(path, "it has no SKILL.md");
  Skill skill;
  skill.name_ = name;
  std::string base(kScheme);
  append_path(base, path);
  base.push_back('/');
  std::size_t bytes = 0;
  for (Source& file : files) {
    if (!is_relative_path(file.path)) return invalid(path, "'" + file.path + "' is no path");
    if (!skill.files_.empty() && skill.files_.back().path == file.path) {
      return invalid(path, "'" + file.path + "' is there twice");
    }
    bytes += file.content.size();
    if (bytes > kMaxBytes) return invalid(path, "there are more than 16 MiB");
    std::string uri = base;
    append_path(uri, file.path);
    std::string mime_type = mime_type_of(file.path, file.content);
    skill.files_.push_back({std::move(file.path), std::move(uri), std::move(mime_type),
                            std::make_shared<const std::string>(std::move(file.content))});
  }
  const std::string& manifest = *skill.files_.front().content;
  if (!is_valid_utf8(manifest)) return invalid(path, "SKILL.md is no UTF-8");
  const Result<json::object> frontmatter = parse_frontmatter(manifest);
  if (!frontmatter) return invalid(path, "SKILL.md: " + frontmatter.error().message);
  if (frontmatter_text(*frontmatter, "name") != name) {
    return invalid(path, "the name in its frontmatter must be that of its folder");
  }
  skill.description_ = frontmatter_text(*frontmatter, "description");
  if (skill.description_.empty()) return invalid(path, "its frontmatter must have a description");
  skill.entry_ = entry_of(*frontmatter, skill.files_);
  return skill;
}

Result<void> offer_skills(ServerDefinition& definition, std::vector<Skill> skills) {
  std::set<std::string_view> taken;
  for (const Resource& resource : definition.resources) taken.insert(resource.uri);
  for (const Skill& skill : skills) {
    for (const Skill::File& file : skill.files()) {
      if (!taken.insert(file.uri).second) {
        return invalid(skill.uri(), "there is already a resource " + file.uri);
      }
    }
  }
  for (Skill& skill : skills) {
    for (const Skill::File& file : skill.files()) {
      definition.resources.push_back(resource_of(skill, file));
    }
    definition.skills.push_back(std::move(skill));
  }
  return {};
}

Result<bool> withdraw_skill(ServerDefinition& definition, std::string_view uri,
                            std::vector<Resource>& removed) {
  const auto skill = std::ranges::find_if(definition.skills, [uri](const Skill& each) {
    return std::ranges::find(each.files(), uri, &Skill::File::uri) != each.files().end();
  });
  if (skill == definition.skills.end()) return false;
  if (uri != skill->uri()) {
    return invalid(skill->uri(), "it says that it has " + std::string(uri) +
                                     "; remove the whole skill, by the URI of its SKILL.md");
  }
  for (const Skill::File& file : skill->files()) {
    const auto found = std::ranges::find(definition.resources, file.uri, &Resource::uri);
    if (found == definition.resources.end()) continue;
    removed.push_back(std::move(*found));
    definition.resources.erase(found);
  }
  definition.skills.erase(skill);
  return true;
}

Result<std::string> read_skill_directory(const ServerDefinition& definition, std::string_view uri) {
  std::string out = R"("resources":[)";
  std::set<std::string_view> folders;
  for (const Skill& skill : definition.skills) {
    const std::string_view root =
        std::string_view(skill.uri()).substr(0, skill.uri().size() - Skill::kManifest.size() - 1);
    if (uri != root && !(uri.starts_with(root) && uri[root.size()] == '/')) continue;
    for (const Skill::File& file : skill.files()) {
      if (!file.uri.starts_with(uri) || file.uri.size() <= uri.size() ||
          file.uri[uri.size()] != '/') {
        continue;
      }
      const std::string_view below = std::string_view(file.uri).substr(uri.size() + 1);
      const std::size_t end = below.find('/');
      if (end == std::string_view::npos) {
        append_child(out, file.uri, file.path.substr(file.path.rfind('/') + 1), file.mime_type);
        continue;
      }
      const std::string_view folder = std::string_view(file.uri).substr(0, uri.size() + 1 + end);
      if (!folders.insert(folder).second) continue;
      const std::optional<std::string> name = percent_decode(below.substr(0, end));
      append_child(out, folder, name.value_or(std::string()), kDirectoryType);
    }
  }
  if (out.back() == '[') {
    return fail(kInvalidParams, "Invalid params: uri is not that of a directory of a skill");
  }
  return out.append("]");
}

}  // namespace sluice

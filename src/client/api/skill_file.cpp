#include "client/api/skill_file.hpp"

#include <cstddef>
#include <optional>
#include <utility>

#include "core/crypto/digest.hpp"
#include "core/text/base64.hpp"
#include "json/members.hpp"
#include "protocol/syntax/frontmatter.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

std::unexpected<Error> unverified(std::string_view uri, std::string_view why) {
  return fail(kInternalError, "The server's skill file " + std::string(uri) + " " +
                                  std::string(why) + "; it must not be used");
}

const json::object* listed_file(const json::object& entry, std::string_view uri) {
  const json::value* const files = entry.if_contains("resources");
  if (files == nullptr || !files->is_array()) return nullptr;
  for (const json::value& each : files->get_array()) {
    const json::object* const file = each.if_object();
    if (file != nullptr && text_at(*file, "uri") == uri) return file;
  }
  return nullptr;
}

std::optional<std::string> bytes_of(const json::array& contents) {
  const json::object* const only = contents.size() == 1 ? contents[0].if_object() : nullptr;
  if (only == nullptr) return std::nullopt;
  if (only->contains("text")) return std::string(text_at(*only, "text"));
  return decode_base64(text_at(*only, "blob"));
}

}  // namespace

Result<std::string> verified_skill_file(const json::object& entry, std::string_view uri,
                                        const json::array& contents) {
  const json::object* const listed = listed_file(entry, uri);
  if (listed == nullptr) {
    return fail(kInvalidParams, "The skill lists no file " + std::string(uri));
  }
  std::optional<std::string> bytes = bytes_of(contents);
  if (!bytes) return unverified(uri, "is neither text nor base64");
  const json::value* const size = listed->if_contains("size");
  if (size != nullptr && *size != json::value(bytes->size())) {
    return unverified(uri, "has " + std::to_string(bytes->size()) + " bytes, and not " +
                               to_json(*size) + " as listed");
  }
  if (text_at(*listed, "digest") != "sha256:" + sha256_hex(*bytes)) {
    return unverified(uri, "does not have the sha256 digest that is listed");
  }
  if (uri != text_at(entry, "uri")) return *std::move(bytes);
  const Result<json::object> frontmatter = parse_frontmatter(*bytes);
  if (!frontmatter) return unverified(uri, "has no frontmatter: " + frontmatter.error().message);
  const json::object* const expected = object_at(entry, "frontmatter");
  if (expected == nullptr || *expected != *frontmatter) {
    return unverified(uri, "has another frontmatter than is listed");
  }
  return *std::move(bytes);
}

}  // namespace sluice

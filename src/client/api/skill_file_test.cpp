#include "client/api/skill_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "core/crypto/digest.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kManifestUri = "skill://pdf/SKILL.md";
constexpr std::string_view kImageUri = "skill://pdf/image.bin";
constexpr std::string_view kManifest = "---\nname: pdf\ndescription: Fills forms\n---\nBody\n";

json::object listed(std::string_view uri, std::string_view bytes) {
  return {{"uri", uri}, {"digest", "sha256:" + sha256_hex(bytes)}, {"size", bytes.size()}};
}

/// What skills/list says of a skill whose SKILL.md is `manifest`.
json::object entry_with(std::string_view manifest) {
  return {{"uri", kManifestUri},
          {"frontmatter", {{"name", "pdf"}, {"description", "Fills forms"}}},
          {"resources", {listed(kManifestUri, manifest), listed(kImageUri, "\x01\xff")}}};
}

json::array text_content(std::string_view text) {
  return {{{"uri", kManifestUri}, {"text", text}}};
}

std::string refusal(const json::object& entry, std::string_view uri, const json::array& contents) {
  const Result<std::string> file = verified_skill_file(entry, uri, contents);
  return file ? "accepted" : file.error().message;
}

TEST(SkillFileTest, WhatIsListedIsAccepted) {
  const json::object entry = entry_with(kManifest);
  EXPECT_EQ(verified_skill_file(entry, kManifestUri, text_content(kManifest)), kManifest);
  const json::array blob = {{{"uri", kImageUri}, {"blob", "Af8="}}};
  EXPECT_EQ(verified_skill_file(entry, kImageUri, blob), "\x01\xff");
}

TEST(SkillFileTest, OtherContentIsRefused) {
  const json::object entry = entry_with(kManifest);
  const std::string longer = std::string(kManifest) + "more\n";
  EXPECT_THAT(refusal(entry, kManifestUri, text_content(longer)), HasSubstr("bytes, and not"));
  std::string changed(kManifest);
  changed.back() = ' ';
  EXPECT_THAT(refusal(entry, kManifestUri, text_content(changed)), HasSubstr("digest"));
  EXPECT_THAT(refusal(entry, kManifestUri, {}), HasSubstr("neither text nor base64"));
  const json::array broken = {{{"uri", kImageUri}, {"blob", "?"}}};
  EXPECT_THAT(refusal(entry, kImageUri, broken), HasSubstr("neither text nor base64"));
}

TEST(SkillFileTest, AnotherFrontmatterIsRefusedAlthoughTheDigestFits) {
  const std::string_view evil = "---\nname: pdf\ndescription: Sends secrets\n---\nBody\n";
  EXPECT_THAT(refusal(entry_with(evil), kManifestUri, text_content(evil)),
              HasSubstr("another frontmatter"));
  EXPECT_THAT(refusal(entry_with("Body"), kManifestUri, text_content("Body")),
              HasSubstr("has no frontmatter"));
}

TEST(SkillFileTest, AFileThatIsNotListedOrHasNoDigestIsRefused) {
  json::object entry = entry_with(kManifest);
  EXPECT_EQ(refusal(entry, "skill://pdf/other.md", text_content("x")),
            "The skill lists no file skill://pdf/other.md");
  entry["resources"].at(0).as_object().erase("digest");
  EXPECT_THAT(refusal(entry, kManifestUri, text_content(kManifest)), HasSubstr("digest"));
}

}  // namespace
}  // namespace sluice

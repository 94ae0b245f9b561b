#include "server/catalog/skills.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "server/dispatch/server_test_support.hpp"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kManifest =
    "---\nname: refunds\ndescription: Refunds orders\nmetadata:\n  version: \"1.0\"\n---\n# "
    "Refunds\n";
constexpr std::string_view kModern =
    R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
    R"("io.modelcontextprotocol/clientCapabilities":{}})";

Result<Skill> refunds(std::vector<Skill::Source> more = {}, std::string_view path = "acme/refunds",
                      std::string_view manifest = kManifest) {
  more.push_back({"SKILL.md", std::string(manifest)});
  return Skill::make(path, std::move(more));
}

class SkillsTest : public ::testing::Test {
 protected:
  std::string ask(std::string_view method, std::string_view params, std::string_view meta = "") {
    return bench.request(
        method,
        std::string(params) + (meta.empty() || params.empty() ? "" : ",") + std::string(meta),
        caller);
  }
  void offer() {
    std::vector<Skill> skills;
    skills.push_back(refunds({{"references/forms & lists.md", "# Forms"},
                              {"references/deep/logo.png", "\x89PNG"},
                              {"run.py", "print(1)"}})
                         .value());
    ASSERT_TRUE(offer_skills(bench.definition, std::move(skills)));
    bench.serve();
  }

  ServerBench bench;
  RecordingCaller caller;
};

TEST_F(SkillsTest, AServerWithoutSkillsKnowsNothingOfThem) {
  for (const std::string_view method : {"skills/list", "skills/get", "resources/directory/read"}) {
    EXPECT_EQ(error_code(ask(method, R"("uri":"skill://a/SKILL.md")")), -32601);
  }
  EXPECT_THAT(ask("server/discover", "", kModern), Not(HasSubstr("skills")));
}

TEST_F(SkillsTest, SkillsAreListedWithTheirFiles) {
  offer();
  for (const std::string_view meta : {std::string_view(), kModern}) {
    const std::string list = ask("skills/list", "", meta);
    EXPECT_THAT(
        list,
        AllOf(
            HasSubstr(R"("skills":[{"uri":"skill://acme/refunds/SKILL.md","frontmatter":)"
                      R"({"name":"refunds","description":"Refunds orders",)"
                      R"("metadata":{"version":"1.0"}},"resources":[)"
                      R"({"uri":"skill://acme/refunds/SKILL.md","digest":"sha256:)"),
            // printf 'print(1)' | sha256sum
            HasSubstr(
                R"({"uri":"skill://acme/refunds/run.py","digest":"sha256:)"
                R"(d287bb7f9d15abdc5b6e98536263815744b6ef21c8f3c839fc434ca70d8efe99","size":8})")));
    EXPECT_EQ(list.find("ttlMs") != std::string::npos, !meta.empty());
    const std::string one = ask("skills/get", R"("uri":"skill://acme/refunds/SKILL.md")", meta);
    EXPECT_THAT(one, HasSubstr(R"("skill":{"uri":"skill://acme/refunds/SKILL.md")"));
    EXPECT_EQ(one.find("cacheScope") != std::string::npos, !meta.empty());
  }
  EXPECT_THAT(ask("server/discover", "", kModern),
              AllOf(HasSubstr(R"("io.modelcontextprotocol/skills":{"directoryRead":true})"),
                    HasSubstr(R"("resources":{})")));
  EXPECT_EQ(error_code(ask("skills/get", R"("uri":"skill://acme/refunds")")), -32602);
  EXPECT_EQ(error_code(ask("skills/get", "")), -32602);
  EXPECT_EQ(error_code(ask("skills/list", R"("cursor":"x")")), -32602);
}

TEST_F(SkillsTest, FilesAreResources) {
  offer();
  EXPECT_THAT(ask("resources/list", ""),
              HasSubstr(R"({"uri":"skill://acme/refunds/SKILL.md","name":"refunds",)"
                        R"("description":"Refunds orders","mimeType":"text/markdown","size":)"));
  EXPECT_THAT(
      ask("resources/read", R"("uri":"skill://acme/refunds/references/forms%20&%20lists.md")"),
      HasSubstr(R"("mimeType":"text/markdown","text":"# Forms")"));
  EXPECT_THAT(ask("resources/read", R"("uri":"skill://acme/refunds/references/deep/logo.png")"),
              HasSubstr(R"("mimeType":"image/png","blob":"iVBORw==")"));
  std::vector<Skill> again;
  again.push_back(refunds().value());
  EXPECT_FALSE(offer_skills(bench.definition, std::move(again)));
}

TEST_F(SkillsTest, FoldersHaveTheirDirectChildren) {
  offer();
  EXPECT_EQ(
      ask("resources/directory/read", R"("uri":"skill://acme/refunds")"),
      result_text(
          R"({"resources":[)"
          R"({"uri":"skill://acme/refunds/SKILL.md","name":"SKILL.md","mimeType":"text/markdown"},)"
          R"({"uri":"skill://acme/refunds/references","name":"references",)"
          R"("mimeType":"inode/directory"},)"
          R"({"uri":"skill://acme/refunds/run.py","name":"run.py","mimeType":"text/x-python"}]})"));
  EXPECT_EQ(ask("resources/directory/read", R"("uri":"skill://acme/refunds/references")"),
            result_text(R"({"resources":[)"
                        R"({"uri":"skill://acme/refunds/references/deep","name":"deep",)"
                        R"("mimeType":"inode/directory"},)"
                        R"({"uri":"skill://acme/refunds/references/forms%20&%20lists.md",)"
                        R"("name":"forms & lists.md","mimeType":"text/markdown"}]})"));
  for (const std::string_view uri :
       {"skill://acme/refunds/SKILL.md", "skill://acme/refunds/", "skill://acme/refund",
        "skill://acme", "skill://acme/refunds/ref", "", "note://now"}) {
    EXPECT_EQ(error_code(ask("resources/directory/read", "\"uri\":\"" + std::string(uri) + "\"")),
              -32602)
        << uri;
  }
}

TEST_F(SkillsTest, ARefusedSkillLeavesNothingBehind) {
  std::vector<Skill> twice;
  twice.push_back(refunds({{"run.py", ""}}).value());
  twice.push_back(refunds().value());
  EXPECT_FALSE(offer_skills(bench.definition, std::move(twice)));

  bench.definition.resources.emplace_back().uri = "skill://acme/refunds/SKILL.md";
  std::vector<Skill> taken;
  taken.push_back(refunds({{"run.py", ""}}).value());
  EXPECT_FALSE(offer_skills(bench.definition, std::move(taken)));

  EXPECT_EQ(bench.definition.resources.size(), 1U);
  EXPECT_TRUE(bench.definition.skills.empty());
}

TEST(Skill, MustFollowTheRules) {
  const auto why = [](const Result<Skill>& skill) {
    return skill ? std::string() : skill.error().message;
  };
  EXPECT_EQ(why(refunds()), "");
  EXPECT_EQ(why(refunds({}, "refunds")), "");
  EXPECT_THAT(why(Skill::make("refunds", {})), HasSubstr("no SKILL.md"));
  EXPECT_THAT(why(refunds({}, "other")), HasSubstr("that of its folder"));
  for (const char* path : {"", "/refunds", "a//refunds", "../refunds", "a/./refunds"}) {
    EXPECT_THAT(why(refunds({}, path)), HasSubstr("no path")) << path;
  }
  for (const std::string& path : {std::string("Refunds"), std::string("-a"), std::string("a-"),
                                  std::string("a--b"), std::string("a_b"), std::string(65, 'a')}) {
    EXPECT_THAT(why(refunds({}, path)), HasSubstr("its name must be")) << path;
  }
  for (const char* path : {"../x", "/x", "a/", "", "a/../b"}) {
    EXPECT_THAT(why(refunds({{path, ""}})), HasSubstr("no path")) << path;
  }
  EXPECT_THAT(why(refunds({{"a", ""}, {"a", ""}})), HasSubstr("there twice"));
  EXPECT_THAT(why(refunds({{"a", std::string(Skill::kMaxBytes, 'a')}})), HasSubstr("16 MiB"));
  EXPECT_THAT(why(refunds(std::vector<Skill::Source>(Skill::kMaxFiles, {"a", ""}))),
              HasSubstr("512 files"));
  EXPECT_THAT(why(refunds({}, "refunds", "---\nname: refunds\n---\n")), HasSubstr("description"));
  EXPECT_THAT(why(refunds({}, "refunds", "# Refunds")), HasSubstr("SKILL.md: frontmatter, line 1"));
  EXPECT_THAT(why(refunds({}, "refunds", "\xFF")), HasSubstr("UTF-8"));
}

}  // namespace
}  // namespace sluice

#include "server/catalog/skill_folder.hpp"

#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stop_token>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <thread>
#include <utility>

#include "core/file_test_support.hpp"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kRefundsSkill =
    "---\nname: refunds\ndescription: Refunds orders\n---\n# Refunds\n";

class SkillFolderTest : public ::testing::Test {
 protected:
  void write(const std::string& path, std::string_view content) {
    const std::filesystem::path file = directory.path(path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << content;
  }
  test::TemporaryDirectory directory;
};

TEST_F(SkillFolderTest, EachFolderWithAManifestIsASkill) {
  write("acme/refunds/SKILL.md", kRefundsSkill);
  write("acme/refunds/references/FORMS.md", "# Forms");
  write("acme/refunds/.hidden", "secret");
  write("acme/README.md", "no skill");
  write("zip/SKILL.md", "---\nname: zip\ndescription: Zips\n---\n");
  write(".git/SKILL.md", "");
  const auto skills = read_skills(directory.path());
  ASSERT_TRUE(skills) << skills.error().message;
  ASSERT_EQ(skills->size(), 2U);
  EXPECT_EQ((*skills)[0].uri(), "skill://acme/refunds/SKILL.md");
  ASSERT_EQ((*skills)[0].files().size(), 2U);
  EXPECT_EQ((*skills)[0].files()[1].path, "references/FORMS.md");
  EXPECT_EQ(*(*skills)[0].files()[1].content, "# Forms");
  EXPECT_EQ((*skills)[1].uri(), "skill://zip/SKILL.md");
}

TEST_F(SkillFolderTest, RefusesWhatIsNoFile) {
  EXPECT_FALSE(read_skills(directory.path("nowhere")));
  write("refunds/SKILL.md", kRefundsSkill);
  std::filesystem::create_symlink("/etc/passwd", directory.path("refunds/link"));
  const auto skills = read_skills(directory.path());
  ASSERT_FALSE(skills);
  EXPECT_THAT(skills.error().message, AllOf(HasSubstr("refunds/link"), HasSubstr("only files")));
}

TEST_F(SkillFolderTest, DoesNotWaitForAWriter) {
  write("refunds/SKILL.md", kRefundsSkill);
  ASSERT_EQ(::mkfifo(directory.path("refunds/pipe").c_str(), 0600), 0);
  const auto skills = read_skills(directory.path());
  ASSERT_FALSE(skills);
  EXPECT_THAT(skills.error().message, AllOf(HasSubstr("refunds/pipe"), HasSubstr("only files")));
}

TEST_F(SkillFolderTest, RefusesAManifestThatIsALink) {
  std::filesystem::create_directory(directory.path("refunds"));
  for (const char* target : {"SKILL.md", "nowhere", "/etc/passwd"}) {
    std::filesystem::remove(directory.path("refunds/SKILL.md"));
    std::filesystem::create_symlink(target, directory.path("refunds/SKILL.md"));
    const auto skills = read_skills(directory.path());
    ASSERT_FALSE(skills) << target;
    EXPECT_THAT(skills.error().message, HasSubstr("only files")) << target;
  }
}

// The file that was checked is the one that is read, even if names are exchanged meanwhile.
TEST_F(SkillFolderTest, FollowsNoLinkThatComesWhileItReads) {
  write("skills/refunds/SKILL.md", kRefundsSkill);
  write("skills/refunds/a/file", "ours");
  write("skills/refunds/b", "ours");
  write("elsewhere/file", "secret");
  std::filesystem::create_symlink(directory.path("elsewhere"), directory.path("folder"));
  std::filesystem::create_symlink(directory.path("elsewhere/file"), directory.path("file"));
  const std::jthread other([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      for (const auto& [ours, link] : {std::pair("a", "folder"), std::pair("b", "file")}) {
        const std::string path = directory.path("skills/refunds/") + ours;
        ASSERT_EQ(::renameat2(AT_FDCWD, path.c_str(), AT_FDCWD, directory.path(link).c_str(),
                              RENAME_EXCHANGE),
                  0);
      }
    }
  });
  int read = 0;
  for (int i = 0; i < 10'000; ++i) {
    const auto skills = read_skills(directory.path("skills"));
    if (!skills) {
      EXPECT_THAT(skills.error().message, HasSubstr("only files"));
      continue;
    }
    ++read;
    for (const Skill::File& file : skills->at(0).files()) {
      ASSERT_THAT(*file.content, Not(HasSubstr("secret"))) << "after " << i;
    }
  }
  EXPECT_GT(read, 0);
}

TEST_F(SkillFolderTest, SaysWhichSkillIsWrong) {
  write("refunds/SKILL.md", "---\nname: other\ndescription: x\n---\n");
  const auto skills = read_skills(directory.path());
  ASSERT_FALSE(skills);
  EXPECT_THAT(skills.error().message, HasSubstr("'refunds'"));
}

}  // namespace
}  // namespace sluice

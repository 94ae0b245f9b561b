#include "engine/methods/model_folder.hpp"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "core/file_test_support.hpp"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ModelFolderTest : public ::testing::Test {
 protected:
  ModelFolderTest() {
    std::filesystem::create_directory(inside);
    std::filesystem::create_directory(inside + "/deep");
    std::ofstream(inside + "/deep/a.bin") << "inside";
    std::ofstream(root.path("secret")) << "outside";
  }
  void link(const std::string& target, const std::string& name) const {
    std::filesystem::create_symlink(target, inside + "/" + name);
  }
  /// Why a path is refused; empty: it is not.
  [[nodiscard]] std::string refusal(const std::string& path) const {
    const Result<NamedFile> found = folder.find("the_path", path);
    return found ? std::string() : found.error().message;
  }
  [[nodiscard]] std::string refusal_of_new(const std::string& path) const {
    const Result<std::string> place = folder.place_for("the_path", path);
    return place ? std::string() : place.error().message;
  }

  test::TemporaryDirectory root;
  std::string inside = root.path("models");
  ModelFolder folder = [this] {
    std::filesystem::create_directory(inside);
    return *ModelFolder::open(inside);
  }();
};

TEST_F(ModelFolderTest, FindsFilesBelowIt) {
  link("deep/a.bin", "link");
  link("deep", "other");
  for (const char* const path : {"deep/a.bin", "./deep//a.bin", "link", "other/a.bin"}) {
    const Result<NamedFile> found = folder.find("the_path", path);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->path, std::filesystem::canonical(inside + "/deep/a.bin")) << path;
  }
}

TEST_F(ModelFolderTest, NothingElseCanBeNamed) {
  link("../secret", "out");
  link("..", "up");
  link(inside + "/deep/a.bin", "absolute");
  link("/dev/zero", "zero");
  link("/proc/self/fd/0", "magic");
  link("loop", "loop");
  ASSERT_EQ(::mkfifo((inside + "/fifo").c_str(), 0600), 0);
  for (const auto& [path, why] : std::vector<std::pair<std::string, std::string>>{
           {"", "must be a path of 1 to 1024 bytes"},
           {std::string("deep/a.bin\0x", 12), "must be a path of"},
           {std::string(2000, 'a'), "must be a path of"},
           {"/etc/passwd", "must be relative"},
           {"../secret", "must have no \"..\""},
           {"deep/../deep/a.bin", "must have no \"..\""},
           {"deep/..", "must have no \"..\""},
           {"nothing", "there is no nothing"},
           {"deep/a.bin/b", "there is no deep/a.bin/b"},
           {"deep", "must name a file, and deep is none"},
           {"fifo", "must name a file, and fifo is none"},
           {"out", "leads out of the folder of --model-dir: out"},
           {"up/secret", "leads out of"},
           {"absolute", "leads out of"},
           {"zero", "leads out of"},
           {"magic", "leads out of"},
           {"loop", "leads out of"}}) {
    EXPECT_THAT(refusal(path), AllOf(HasSubstr("Invalid params: the_path"), HasSubstr(why),
                                     Not(HasSubstr(root.path()))))
        << path;
  }
}

TEST_F(ModelFolderTest, NewFilesAreBelowItToo) {
  link("../secret", "out");
  link("..", "up");
  link("gone", "dangling");
  const Result<std::string> place = folder.place_for("the_path", "deep/b.bin");
  ASSERT_TRUE(place) << place.error().message;
  EXPECT_EQ(*place, std::filesystem::canonical(inside + "/deep").string() + "/b.bin");
  EXPECT_EQ(refusal_of_new("c.bin"), "");
  for (const auto& [path, why] : std::vector<std::pair<std::string, std::string>>{
           {"deep/a.bin", "must name a new file"},
           {"out", "must name a new file"},
           {"dangling", "must name a new file"},
           {"up/new", "leads out of"},
           {"../new", "must have no \"..\""},
           {"/tmp/new", "must be relative"},
           {"deep/", "must end with the name of a file"},
           {"deep/.", "must end with the name of a file"},
           {"nowhere/new", "there is no nowhere/new"}}) {
    EXPECT_THAT(refusal_of_new(path), AllOf(HasSubstr(why), Not(HasSubstr(root.path())))) << path;
  }
}

TEST_F(ModelFolderTest, AFolderThatIsNoneIsRefused) {
  EXPECT_FALSE(ModelFolder::open(root.path("nowhere")));
  EXPECT_FALSE(ModelFolder::open(root.path("secret")));
}

}  // namespace
}  // namespace sluice

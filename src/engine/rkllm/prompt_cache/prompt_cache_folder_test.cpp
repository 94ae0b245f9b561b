#include "engine/rkllm/prompt_cache/prompt_cache_folder.hpp"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>
#include <optional>
#include <string>
#include <sys/stat.h>
#include <utility>
#include <vector>

#include "core/file_test_support.hpp"

namespace sluice::rkllm {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A folder of caches whose prompts are worth a file from 10 bytes on, and a runtime that writes
/// 100 bytes for each.
class PromptCacheFolderTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kFile = 100;

  PromptCacheFolder open(PromptCacheLimits limits = {.bytes = 1000, .least_prompt = 10}) const {
    auto opened = PromptCacheFolder::open(path, limits);
    EXPECT_TRUE(opened) << opened.error().message;
    return *std::move(opened);
  }
  [[nodiscard]] std::string refusal() const {
    const auto opened = PromptCacheFolder::open(path, {});
    return opened ? std::string() : opened.error().message;
  }
  static CachedPrompt prompt(std::string text, std::string owner = "alice") {
    return {.model = "m", .owner = std::move(owner), .text = std::move(text)};
  }
  /// Writes as the runtime does.
  static void write(const CachePlan& plan, std::uint64_t bytes = kFile) {
    std::ofstream(plan.save->path) << std::string(bytes, 'k');
  }
  /// Saves a prompt; does not, if the plan is not to.
  static bool save(PromptCacheFolder& folder, const CachedPrompt& prompt,
                   std::uint64_t bytes = kFile) {
    const CachePlan plan = folder.plan(prompt);
    if (!plan.save) return false;
    write(plan, bytes);
    folder.keep(*plan.save, 7);
    return true;
  }
  /// The name of the file that a prompt is to load; empty: none.
  static std::string loaded(PromptCacheFolder& folder, const CachedPrompt& prompt) {
    const CachePlan plan = folder.plan(prompt);
    if (plan.save) folder.discard(*plan.save, false);
    return plan.load ? plan.load->name : "";
  }
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> out;
    for (const auto& each : std::filesystem::directory_iterator(path)) {
      if (each.path().extension() != ".json" && each.path().filename() != "lock") {
        out.push_back(each.path().filename());
      }
    }
    return out;
  }
  static mode_t mode_of(const std::string& file) {
    struct stat status{};
    EXPECT_EQ(::stat(file.c_str(), &status), 0) << file;
    return status.st_mode & 0777U;
  }

  ::sluice::test::TemporaryDirectory directory;
  std::string path = directory.path("above/caches");
};

const std::string kFirst = "The first prompt.\n";
const std::string kSecond = kFirst + "And what comes then, too.\n";

TEST_F(PromptCacheFolderTest, LoadsTheLongestThatAPromptBeginsWith) {
  PromptCacheFolder folder = open();
  EXPECT_TRUE(save(folder, prompt(kFirst)));
  EXPECT_TRUE(save(folder, prompt(kSecond)));
  EXPECT_EQ(files().size(), 2U);
  EXPECT_EQ(folder.bytes(), 2 * kFile);
  const std::string first = loaded(folder, prompt(kFirst + "Something else."));
  const std::string second = loaded(folder, prompt(kSecond + "More."));
  EXPECT_NE(first, "");
  EXPECT_NE(second, "");
  EXPECT_NE(first, second);
  EXPECT_EQ(loaded(folder, prompt(kFirst)), first);
  EXPECT_EQ(loaded(folder, prompt("The first prompt, but for its end.")), "");
  EXPECT_EQ(folder.plan(prompt(kFirst)).load->tokens, 7U);
  EXPECT_FALSE(save(folder, prompt(kFirst))) << "it is there";
  EXPECT_FALSE(save(folder, prompt(kFirst + "Little."))) << "it spares too little";
  EXPECT_FALSE(save(folder, prompt("Short"))) << "it is too short";
}

TEST_F(PromptCacheFolderTest, BelongsToItsModelAndItsPrincipal) {
  PromptCacheFolder folder = open();
  save(folder, prompt(kFirst));
  EXPECT_EQ(loaded(folder, prompt(kFirst, "bob")), "");
  EXPECT_EQ(loaded(folder, {.model = "n", .owner = "alice", .text = kFirst}), "");
  // What joins the two cannot be moved from one to the other.
  EXPECT_EQ(loaded(folder, {.model = "ma", .owner = "lice", .text = kFirst}), "");
  EXPECT_TRUE(save(folder, prompt(kFirst, "bob"))) << "each has a file";
  EXPECT_EQ(files().size(), 2U);
}

TEST_F(PromptCacheFolderTest, NoTokenGoesOverTheEndOfACache) {
  PromptCacheFolder folder = open();
  save(folder, prompt("What is a cat"));
  save(folder, prompt("<|im_start|>assistant\n"));
  save(folder, prompt("Tell me: <|assistant|>"));
  EXPECT_NE(loaded(folder, prompt("What is a cat")), "");
  EXPECT_EQ(loaded(folder, prompt("What is a category?")), "");
  EXPECT_EQ(loaded(folder, prompt("What is a cat ")), "");
  EXPECT_NE(loaded(folder, prompt("<|im_start|>assistant\nA cat")), "");
  EXPECT_EQ(loaded(folder, prompt("<|im_start|>assistant\n\n")), "");
  EXPECT_NE(loaded(folder, prompt("Tell me: <|assistant|> of it")), "");
  // The runtime puts its own texts behind these.
  CachedPrompt closed = prompt("<|im_start|>assistant\nA cat");
  closed.is_closed = true;
  EXPECT_EQ(loaded(folder, closed), "");
  closed.text = "<|im_start|>assistant\n";
  EXPECT_NE(loaded(folder, closed), "");
}

TEST_F(PromptCacheFolderTest, DoesNotLoadWhatTheRuntimeHasInItsMemory) {
  PromptCacheFolder folder = open();
  save(folder, prompt(kFirst));
  CachedPrompt live = prompt(kSecond);
  live.live = kFirst.size() - 9;
  EXPECT_EQ(loaded(folder, live), "");
  live.live = kFirst.size() - 10;
  EXPECT_NE(loaded(folder, live), "");
}

TEST_F(PromptCacheFolderTest, RemovesThoseUsedLeastRecently) {
  PromptCacheFolder folder = open({.bytes = 3 * kFile + 20, .least_prompt = 10});
  const auto numbered = [](int i) {
    return prompt("The prompt number " + std::to_string(i) + "\n");
  };
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(save(folder, numbered(i)));
  EXPECT_NE(loaded(folder, numbered(0)), "");
  const CachePlan plan = folder.plan(numbered(3));
  ASSERT_TRUE(plan.save);
  EXPECT_LE(folder.bytes(), 2 * kFile) << "there is room before it is written";
  write(plan);
  folder.keep(*plan.save, 0);
  EXPECT_EQ(folder.bytes(), files().size() * kFile);
  EXPECT_EQ(folder.bytes(), 3 * kFile);
  EXPECT_EQ(loaded(folder, numbered(1)), "");
  EXPECT_NE(loaded(folder, numbered(0)), "") << "it was used";
  EXPECT_NE(loaded(folder, numbered(3)), "");
}

TEST_F(PromptCacheFolderTest, KeepsWithinItsNumberOfFiles) {
  PromptCacheFolder folder = open({.bytes = 1000, .files = 2, .least_prompt = 10});
  for (const char* each : {"The prompt one\n", "The prompt two\n", "The prompt three\n"}) {
    EXPECT_TRUE(save(folder, prompt(each)));
  }
  EXPECT_EQ(files().size(), 2U);
}

TEST_F(PromptCacheFolderTest, AFileThatIsTooLargeIsNotKeptAndNotTriedAgain) {
  PromptCacheFolder folder = open();
  EXPECT_TRUE(save(folder, prompt(kFirst), 1001));
  EXPECT_TRUE(files().empty());
  EXPECT_EQ(folder.bytes(), 0U);
  EXPECT_FALSE(save(folder, prompt(kFirst)));
}

TEST_F(PromptCacheFolderTest, ADiskThatIsFullGetsNothing) {
  PromptCacheFolder folder =
      open({.bytes = 1000, .least_prompt = 10, .free_bytes = std::uint64_t{1} << 62U});
  EXPECT_FALSE(folder.plan(prompt(kFirst)).save);
}

TEST_F(PromptCacheFolderTest, AFileThatHasChangedIsRemoved) {
  PromptCacheFolder folder = open();
  save(folder, prompt(kFirst));
  save(folder, prompt(kSecond));
  const std::string first = loaded(folder, prompt(kFirst));
  const std::string second = loaded(folder, prompt(kSecond));
  std::ofstream(path + "/" + second + ".cache") << std::string(kFile, 'K');
  EXPECT_EQ(loaded(folder, prompt(kSecond)), first) << "the shorter one is whole";
  EXPECT_EQ(files(), std::vector{first + ".cache"});
  EXPECT_EQ(folder.bytes(), kFile);
  std::filesystem::remove(path + "/" + first + ".cache");
  EXPECT_EQ(loaded(folder, prompt(kSecond)), "");
}

TEST_F(PromptCacheFolderTest, ForgetsWhatTheRuntimeDoesNotTake) {
  PromptCacheFolder folder = open();
  save(folder, prompt(kFirst));
  folder.forget(loaded(folder, prompt(kFirst)), "it says so");
  folder.forget("nothing", "it is gone");
  EXPECT_TRUE(files().empty());
  EXPECT_EQ(folder.bytes(), 0U);
}

TEST_F(PromptCacheFolderTest, StopsSavingWhereThatFails) {
  PromptCacheFolder folder = open();
  const auto fail_once = [&folder] {
    const CachePlan plan = folder.plan(prompt(kFirst));
    if (!plan.save) return false;
    folder.keep(*plan.save, 0);  // nothing was written
    return true;
  };
  EXPECT_TRUE(fail_once());
  EXPECT_TRUE(save(folder, prompt(kSecond))) << "which is a success in between";
  EXPECT_TRUE(fail_once());
  const CachePlan plan = folder.plan(prompt(kFirst));
  ASSERT_TRUE(plan.save);
  write(plan);
  folder.discard(*plan.save, true);
  EXPECT_EQ(files().size(), 1U) << "what a dead process has left is removed";
  EXPECT_FALSE(fail_once());
  EXPECT_NE(loaded(folder, prompt(kSecond)), "") << "what there is is used";
}

TEST_F(PromptCacheFolderTest, TwoThatSaveTheSamePromptDoNotDisturbEachOther) {
  PromptCacheFolder folder = open();
  EXPECT_TRUE(save(folder, prompt(kSecond))) << "so it is known how large they are";
  const CachePlan one = folder.plan(prompt(kFirst));
  const CachePlan two = folder.plan(prompt(kFirst));
  ASSERT_TRUE(one.save && two.save);
  EXPECT_NE(one.save->path, two.save->path);
  write(one);
  write(two);
  folder.keep(*one.save, 0);
  folder.keep(*two.save, 0);
  EXPECT_EQ(files().size(), 2U);
  EXPECT_EQ(folder.bytes(), 2 * kFile);
}

TEST_F(PromptCacheFolderTest, IsTheSameAfterARestart) {
  std::string oldest;
  {
    PromptCacheFolder folder = open();
    save(folder, prompt(kFirst));
    save(folder, prompt(kSecond));
    EXPECT_NE(loaded(folder, prompt(kFirst)), "");  // so the second was used less recently
    oldest = folder.plan(prompt(kSecond)).load->name;
    EXPECT_NE(loaded(folder, prompt(kFirst)), "");
  }
  const std::string ours = path + "/" + std::string(64, 'a');
  std::ofstream(ours + ".1.new") << "unfinished";
  std::ofstream(ours + ".cache") << "not in the index";
  std::ofstream(path + "/notes.cache") << "somebody else's";
  PromptCacheFolder folder = open({.bytes = 150, .least_prompt = 10});
  EXPECT_EQ(folder.bytes(), kFile) << "it shrinks to its limit";
  EXPECT_EQ(loaded(folder, prompt(kFirst)) + ".cache|" + oldest, [&] {
    std::vector<std::string> rest = files();
    std::erase(rest, "notes.cache");
    EXPECT_EQ(rest.size(), 1U);
    return rest.front() + "|" + oldest;
  }());
  EXPECT_TRUE(std::filesystem::exists(path + "/notes.cache"));
  EXPECT_FALSE(std::filesystem::exists(path + "/" + oldest + ".cache"));
}

TEST_F(PromptCacheFolderTest, AnIndexThatIsDamagedIsOneOfNothing) {
  {
    auto folder = open();
    save(folder, prompt(kFirst));
  }
  std::ifstream written(path + "/index.json");
  const std::string good(std::istreambuf_iterator<char>(written), {});
  for (const std::string& bad :
       {std::string("{"), std::string("[]"), std::string(R"({"version":2,"files":[]})"),
        std::string(good).replace(good.find("100"), 3, "101"),
        std::string(good).replace(good.find(R"("name":")") + 8, 2, "..")}) {
    {
      auto folder = open();
      save(folder, prompt(kFirst));
    }
    std::ofstream(path + "/index.json") << bad;
    const PromptCacheFolder folder = open();
    EXPECT_EQ(folder.bytes(), 0U) << bad;
    EXPECT_TRUE(files().empty()) << bad;
  }
}

TEST_F(PromptCacheFolderTest, OnlyWeCanReadIt) {
  PromptCacheFolder folder = open();
  save(folder, prompt("A secret word.\n", "alice the owner"));
  EXPECT_EQ(mode_of(path), 0700U);
  EXPECT_EQ(mode_of(path + "/" + files().front()), 0600U);
  EXPECT_EQ(mode_of(path + "/index.json"), 0600U);
  std::ifstream index(path + "/index.json");
  const std::string all = std::string(std::istreambuf_iterator<char>(index), {}) + files().front();
  EXPECT_THAT(all, Not(HasSubstr("secret")));
  EXPECT_THAT(all, Not(HasSubstr("alice")));
}

TEST_F(PromptCacheFolderTest, IsRefusedIfItIsNotOursAlone) {
  {
    open();
  }
  ::chmod(path.c_str(), 0750);
  EXPECT_THAT(refusal(), HasSubstr("others may use it; forbid that with chmod go-rwx"));
  ::chmod(path.c_str(), 0700);
  const std::string above = std::filesystem::path(path).parent_path();
  ::chmod(above.c_str(), 0770);
  EXPECT_THAT(refusal(), HasSubstr("others may write to it"));
  ::chmod(above.c_str(), 0700);
  EXPECT_EQ(refusal(), "");
  path = directory.path("file");
  std::ofstream(path) << "a file";
  EXPECT_THAT(refusal(), HasSubstr("is not a folder"));
}

TEST_F(PromptCacheFolderTest, OneProcessUsesItAtATime) {
  std::optional<PromptCacheFolder> first(open());
  EXPECT_THAT(refusal(), HasSubstr("another process keeps its prompt caches there"));
  first.reset();
  EXPECT_EQ(refusal(), "");
}

}  // namespace
}  // namespace sluice::rkllm

#include "cli/targets/session_files.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "cli/options/exit_code.hpp"
#include "core/file_test_support.hpp"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SessionFilesTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& file) const {
    return directory.path("run/sessions/" + file);
  }
  /// What fails, as its code and message; empty if nothing does.
  template <class T>
  static std::string failure(const Result<T>& result) {
    return result ? "" : std::to_string(result.error().code) + " " + result.error().message;
  }

  test::TemporaryDirectory directory;
  SessionFiles files{directory.path("run/sessions")};
};

TEST_F(SessionFilesTest, ASessionIsFoundAsLongAsItHasItsName) {
  EXPECT_TRUE(files.running()->empty());
  std::optional<SessionClaim> claim = files.claim("notes").value();
  ASSERT_TRUE(claim->write({.name = "notes",
                            .target = "-- notes",
                            .server = "Notes 1",
                            .since = "2026-07-28T12:00:00.000Z",
                            .process = 42}));
  const SessionInfo found = files.find("notes").value();
  EXPECT_EQ(found.name, "notes");
  EXPECT_EQ(found.target, "-- notes");
  EXPECT_EQ(found.server, "Notes 1");
  EXPECT_EQ(found.since, "2026-07-28T12:00:00.000Z");
  EXPECT_EQ(found.process, 42);
  struct stat status{};
  ASSERT_EQ(::stat(path("").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
  ASSERT_EQ(::stat(path("notes.json").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  claim.reset();
  EXPECT_TRUE(files.running()->empty());
}

TEST_F(SessionFilesTest, AProcessThatMayBeAnywhereIsElsewhere) {
  const SessionClaim claim = files.claim("notes").value();
  ASSERT_TRUE(claim.write({.name = "notes", .process = 42}));
  EXPECT_FALSE(files.find("notes")->is_elsewhere);
  // As it is written where /proc is not mounted.
  std::ofstream(path("notes.json")) << R"({"pid":42,"process_space":"unknown"})";
  EXPECT_TRUE(files.find("notes")->is_elsewhere);
}

TEST_F(SessionFilesTest, TheFoldersAreOfOneUserWhateverTheUmask) {
  const auto old_mask = ::umask(002);
  const auto claim = files.claim("notes");
  ::umask(old_mask);
  EXPECT_TRUE(claim) << failure(claim);
  struct stat status{};
  ASSERT_EQ(::stat(directory.path("run").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
}

TEST_F(SessionFilesTest, ANameIsOfOneSession) {
  std::optional<SessionClaim> claim = files.claim("notes").value();
  EXPECT_THAT(failure(files.claim("notes")),
              AllOf(HasSubstr("2 there is a session notes already"), HasSubstr("--name")));
  EXPECT_TRUE(files.claim("others"));
  claim.reset();
  EXPECT_TRUE(files.claim("notes"));
}

TEST_F(SessionFilesTest, TheNumberOfSessionsIsLimited) {
  std::vector<SessionClaim> claims;
  for (std::size_t i = 0; i < SessionFiles::kMaxSessions; ++i) {
    claims.push_back(files.claim("n" + std::to_string(i)).value());
  }
  EXPECT_THAT(failure(files.claim("more")), HasSubstr("there are 100 sessions"));
  claims.pop_back();
  EXPECT_TRUE(files.claim("more"));
}

TEST_F(SessionFilesTest, AnUnknownNameIsToldWhichThereAre) {
  EXPECT_EQ(failure(files.find("notes")),
            "2 there is no session notes; begin one with `sluice session start`");
  const auto one = files.claim("one").value();
  const auto two = files.claim("two").value();
  EXPECT_THAT(failure(files.find("notes")), HasSubstr("there are @one, @two;"));
}

TEST_F(SessionFilesTest, WhatAKilledSessionHasLeftIsRemovedButForItsLog) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto claim = files.claim("notes");
    std::ofstream(claim->socket()) << "";
    std::ofstream(claim->log()) << "so it ended";
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(std::filesystem::exists(path("notes.sock")));
  EXPECT_THAT(failure(files.find("notes")), HasSubstr("the log of the last one is " + path("")));
  EXPECT_FALSE(std::filesystem::exists(path("notes.sock")));
  EXPECT_FALSE(std::filesystem::exists(path("notes.json")));
  EXPECT_TRUE(std::filesystem::exists(path("notes.log")));
}

TEST_F(SessionFilesTest, AForkedProcessKeepsTheName) {
  std::optional<SessionClaim> claim = files.claim("notes").value();
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[1]);
    char none = 0;
    ::_exit(static_cast<int>(::read(ends[0], &none, 1)));  // until the parent closes its end
  }
  ::close(ends[0]);
  claim.reset();
  EXPECT_TRUE(files.find("notes"));
  ::close(ends[1]);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(files.find("notes"));
}

TEST_F(SessionFilesTest, NothingIsLeftOfASessionThatRemovesItsFiles) {
  {
    const auto claim = files.claim("notes").value();
    std::ofstream(claim.socket()) << "";
    std::ofstream(claim.log()) << "";
    claim.remove_files(false);
  }
  EXPECT_TRUE(std::filesystem::is_empty(path("")));
}

TEST_F(SessionFilesTest, AFolderThatOthersMayUseIsRefused) {
  std::filesystem::create_directories(path(""));
  ::chmod(path("").c_str(), 0750);
  EXPECT_THAT(failure(files.running()), HasSubstr("chmod go-rwx"));
  EXPECT_THAT(failure(files.claim("notes")), HasSubstr("chmod go-rwx"));
  std::filesystem::remove(path("").substr(0, path("").size() - 1));
  std::ofstream(directory.path("run/sessions")) << "";
  EXPECT_THAT(failure(files.running()), HasSubstr("is not a folder"));
}

TEST_F(SessionFilesTest, NothingIsMadeInAFolderThatOthersMayWriteTo) {
  std::filesystem::create_directory(directory.path("open"));
  ASSERT_EQ(::chmod(directory.path("open").c_str(), 0777), 0);
  std::filesystem::create_symlink(directory.path("open"), directory.path("run"));
  EXPECT_THAT(failure(files.claim("notes")), HasSubstr("others may write to it"));
  EXPECT_TRUE(std::filesystem::is_empty(directory.path("open")));
}

TEST_F(SessionFilesTest, WhatIsNoInfoIsASessionThatIsAboutToBegin) {
  const auto claim = files.claim("notes").value();
  std::ofstream(path("notes.json")) << "{\"pid\":";
  EXPECT_EQ(files.find("notes")->process, 0);
}

TEST_F(SessionFilesTest, NamesAreShortAndPlain) {
  for (const char* const name : {"", ".a", "-a", "a/b", "a b", "..", "ä"}) {
    EXPECT_THAT(failure(files.claim(name)), HasSubstr("2 ")) << name;
  }
  EXPECT_TRUE(is_session_name(std::string(kMaxSessionName, 'a')));
  EXPECT_FALSE(is_session_name(std::string(kMaxSessionName + 1, 'a')));
  EXPECT_TRUE(is_session_word("@a.b_c-1"));
  EXPECT_FALSE(is_session_word("@org/server"));
  EXPECT_FALSE(is_session_word("notes"));
  const SessionFiles deep(directory.path(std::string(100, 'd')));
  EXPECT_THAT(failure(deep.claim("notes")), HasSubstr("set XDG_RUNTIME_DIR"));
}

TEST(SessionsFolderTest, IsInTheRuntimeFolderOrElseWithTheState) {
  const auto folder = [](std::string_view variable, std::string value,
                         std::string home = "/home/me") {
    const auto environment = [&](const std::string& name) {
      return name == variable ? std::optional(value) : std::nullopt;
    };
    return sessions_folder({.home = std::move(home),
                            .directory = "/",
                            .environment = environment,
                            .exists = [](const std::string&) { return false; }});
  };
  EXPECT_EQ(folder("XDG_RUNTIME_DIR", "/run/user/1"), "/run/user/1/sluice/sessions");
  EXPECT_EQ(folder("XDG_STATE_HOME", "/state"), "/state/sluice/sessions");
  EXPECT_EQ(folder("XDG_RUNTIME_DIR", "relative"), "/home/me/.local/state/sluice/sessions");
  EXPECT_EQ(folder("", "", ""), "");
}

}  // namespace
}  // namespace sluice

#include "net/process/child_process.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace sluice {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

/// Runs shell scripts.
class ChildProcessTest : public ::testing::Test {
 protected:
  static ChildCommand script(std::string text) {
    return {.arguments = {"sh", "-c", std::move(text)}};
  }
  void start(const ChildCommand& command, ChildDeadlines deadlines = {}) {
    Result<ChildProcess::Started> started = ChildProcess::start(*loop, command, deadlines);
    ASSERT_TRUE(started) << started.error().message;
    child.emplace(std::move(started->process));
    input = std::move(started->input);
    output = std::move(started->output);
    child->on_exit([this](ExitStatus how) { ended = how; });
  }
  bool until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (!done()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      if (!loop->poll()) std::this_thread::yield();
    }
    return true;
  }
  /// The next line that the child writes.
  std::string line() {
    std::string text;
    EXPECT_TRUE(until([&] {
      char c = 0;
      while (::read(output.get(), &c, 1) == 1) {
        if (c == '\n') return true;
        text += c;
      }
      return false;
    }));
    return text;
  }
  pid_t id_line() { return std::stoi(line()); }
  void write(std::string_view text) {
    EXPECT_EQ(::write(input.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  /// Whether the process runs. One that has been killed may still wait for whoever has to reap it.
  static bool is_alive(pid_t process) {
    const std::string status = "/proc/" + std::to_string(process) + "/stat";
    const int file = ::open(status.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    std::array<char, 512> text{};
    const ssize_t size = ::read(file, text.data(), text.size());
    ::close(file);
    if (size <= 0) return false;
    const std::string_view view(text.data(), static_cast<std::size_t>(size));
    const char state = view[view.rfind(')') + 2];
    return state != 'Z' && state != 'X';
  }
  bool dies(pid_t process) {
    if (until([process] { return !is_alive(process); })) return true;
    ::kill(process, SIGKILL);  // it would keep what reads our output waiting
    return false;
  }

  std::optional<EventLoop> loop{std::in_place};
  std::optional<ChildProcess> child;
  Descriptor input;
  Descriptor output;
  std::optional<ExitStatus> ended;
};

TEST_F(ChildProcessTest, TalksAndEndsWithItsInput) {
  start(script("while read -r line; do echo \"got $line\"; done; exit 3"));
  write("one\n");
  EXPECT_EQ(line(), "got one");
  write("two\n");
  EXPECT_EQ(line(), "got two");
  input.close();
  child->stop();
  ASSERT_TRUE(until([this] { return ended.has_value(); }));
  EXPECT_EQ(ended->describe(), "it has ended with code 3");
}

TEST_F(ChildProcessTest, HasItsOwnEnvironmentDirectoryAndGroup) {
  ChildCommand command = script(
      "echo \"$OWN $HOME\"; pwd; read -r pid name state parent group session rest < /proc/$$/stat; "
      "echo $group $session; echo $$");
  command.environment = {{"OWN", "a b"}, {"HOME", "/nowhere"}};
  command.directory = "/usr";
  start(command);
  EXPECT_EQ(line(), "a b /nowhere");
  EXPECT_EQ(line(), "/usr");
  const std::string id = std::to_string(child->pid());
  EXPECT_EQ(line(), id + " " + id) << "the session is not ours: it has no terminal";
  EXPECT_EQ(line(), id);
}

TEST_F(ChildProcessTest, HasNoOtherDescriptorsAndNoBlockedSignals) {
  const Descriptor open(::open("/dev/null", O_RDONLY));
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  sigset_t before;
  ::pthread_sigmask(SIG_BLOCK, &pipe, &before);
  start(script(
      "n=0; while [ $n -lt 50 ]; do [ -e /proc/$$/fd/$n ] && printf '%s ' $n; n=$((n + 1)); done; "
      "echo; exec grep -E 'SigBlk|SigIgn' /proc/self/status"));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(line(), "0 1 2 ");
  EXPECT_EQ(line(), "SigBlk:\t0000000000000000");
  EXPECT_EQ(line(), "SigIgn:\t0000000000000000");
}

TEST_F(ChildProcessTest, HasTheFilesThatItIsGiven) {
  std::array<int, 2> first{};
  std::array<int, 2> second{};
  ASSERT_EQ(::pipe2(first.data(), O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(second.data(), O_CLOEXEC), 0);
  ChildCommand command = script("echo one >&3; echo two >&4; echo done");
  command.descriptors = {second[1], first[1]};
  start(command);
  EXPECT_EQ(line(), "done");
  const auto read_line = [](int from) {
    std::array<char, 16> text{};
    const ssize_t size = ::read(from, text.data(), text.size());
    return std::string(text.data(), size < 0 ? 0 : static_cast<std::size_t>(size));
  };
  EXPECT_EQ(read_line(second[0]), "one\n");
  EXPECT_EQ(read_line(first[0]), "two\n");
  for (const int each : {first[0], first[1], second[0], second[1]}) ::close(each);
}

TEST_F(ChildProcessTest, ThatCannotStartSaysWhy) {
  const auto why = [this](ChildCommand command) {
    const auto started = ChildProcess::start(*loop, command);
    return started ? "started"
                   : std::to_string(started.error().code) + " " + started.error().message;
  };
  EXPECT_EQ(why({}), "400 There is no program to start");
  EXPECT_EQ(why({.arguments = {"no-such-program"}}),
            "400 There is no program \"no-such-program\" in PATH");
  EXPECT_EQ(why({.arguments = {"/etc/passwd"}}), "400 Cannot start /etc/passwd: Permission denied");
  EXPECT_EQ(why({.arguments = {"/no/such"}}),
            "400 Cannot start /no/such: No such file or directory");
  EXPECT_EQ(why({.arguments = {"sh"}, .environment = {{"PATH", "/nowhere"}}}),
            "400 There is no program \"sh\" in PATH");
  EXPECT_EQ(why({.arguments = {"sh"}, .directory = "/no/such"}),
            "400 There is no directory /no/such");
  EXPECT_THAT(why({.arguments = {"sh", std::string("a\0b", 3)}}), HasSubstr("null character"));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "something was left to be reaped";
}

TEST_F(ChildProcessTest, IsAskedAndThenKilled) {
  start(script("trap 'echo asked' TERM; echo ready; while :; do sleep 0.01; done"),
        {.after_input = 1ms, .after_term = 1s});
  EXPECT_EQ(line(), "ready");
  input.close();
  child->stop();
  EXPECT_EQ(line(), "asked");
  ASSERT_TRUE(until([this] { return ended.has_value(); }));
  EXPECT_EQ(ended->describe(), "it was ended by SIGKILL");
  EXPECT_TRUE(ended->was_signalled);
}

TEST_F(ChildProcessTest, ItsShellTakesNothingWithItThatLives) {
  // A shell that ignores SIGTERM, with a program in the background that does so too.
  start(
      script("trap '' TERM; sh -c 'trap \"\" TERM; echo $$; while :; do sleep 0.01; done' & wait"),
      {.after_input = 1ms, .after_term = 1ms});
  const pid_t grandchild = id_line();
  input.close();
  child->stop();
  ASSERT_TRUE(until([this] { return ended.has_value(); }));
  EXPECT_TRUE(dies(grandchild));
}

TEST_F(ChildProcessTest, WhatIsLeftWhenItEndsByItselfIsKilled) {
  start(script("sh -c 'echo $$; exec sleep 1000' & read -r line; exit 0"));
  const pid_t grandchild = id_line();
  write("end\n");
  ASSERT_TRUE(until([this] { return ended.has_value(); }));
  EXPECT_EQ(ended->describe(), "it has ended with code 0");
  EXPECT_TRUE(dies(grandchild));
}

TEST_F(ChildProcessTest, WhatHasLeftItsGroupIsKilledToo) {
  start(script("setsid sh -c 'echo $$; exec sleep 1000' & read -r line; exit 0"));
  const pid_t daemon = id_line();
  write("end\n");
  ASSERT_TRUE(until([this] { return ended.has_value(); }));
  EXPECT_TRUE(dies(daemon));
}

TEST_F(ChildProcessTest, WhatAChildOfAChildHasStartedIsKnownToBoth) {
  ::setenv("SLUICE_CHILD_outer", "1", 1);
  start(script("env | grep -c ^SLUICE_CHILD_"));
  ::unsetenv("SLUICE_CHILD_outer");
  EXPECT_EQ(line(), "2");
}

TEST_F(ChildProcessTest, WhatIsInTheMiddleOfExecIsKilledToo) {
  // A process that becomes another program again and again. It has no environment in between.
  const std::string becomes_itself = R"(export SELF='exec sh -c "$SELF"'; eval "$SELF")";
  for (int times = 0; times < 50; ++times) {
    ended.reset();
    ChildCommand command = script("setsid sh -c 'echo $$; eval \"$LOOP\"' & read -r line; exit 0");
    command.environment = {{"LOOP", becomes_itself}};
    start(command);
    const pid_t daemon = id_line();
    write("end\n");
    ASSERT_TRUE(until([this] { return ended.has_value(); }));
    ASSERT_TRUE(dies(daemon)) << "the " << times << "th";
  }
}

TEST_F(ChildProcessTest, OtherChildrenLiveOn) {
  start(script("echo $$; exec sleep 1000"));
  const pid_t first = id_line();
  ChildProcess kept = std::move(*child);
  start(script("exit 0"));
  ASSERT_TRUE(until([this] { return ended.has_value(); }));
  EXPECT_TRUE(is_alive(first));
}

TEST_F(ChildProcessTest, IsEndedByItsDestructor) {
  start(script("echo $$; exec sleep 1000"), {.after_input = 1ms, .after_term = 1ms});
  const pid_t process = id_line();
  child.reset();
  EXPECT_TRUE(dies(process));
  EXPECT_TRUE(until([] { return ::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD; }));
  EXPECT_FALSE(ended);
}

TEST_F(ChildProcessTest, IsKilledWithTheLoop) {
  start(script("trap '' TERM; echo $$; while :; do sleep 0.01; done"));
  const pid_t process = id_line();
  child.reset();
  loop->discard_tasks();
  loop.reset();
  EXPECT_FALSE(is_alive(process));
}

TEST_F(ChildProcessTest, MayBeDestroyedWhereItsEndIsHeardOf) {
  start(script("exit 7"));
  child->on_exit([this](ExitStatus how) {
    ended = how;
    child.reset();
  });
  ASSERT_TRUE(until([this] { return ended.has_value(); }));
  EXPECT_EQ(ended->code, 7);
}

TEST_F(ChildProcessTest, ItsEndIsToldAlsoToWhoeverAsksAfterwards) {
  start(script("exit 7"));
  ASSERT_TRUE(until([this] { return ended.has_value(); }));
  EXPECT_FALSE(ended->was_signalled);
  ended.reset();
  child->on_exit([this](ExitStatus how) { ended = how; });
  child->stop();
  EXPECT_FALSE(ended) << "told from within the call";
  ASSERT_TRUE(until([this] { return ended.has_value(); }));
  EXPECT_EQ(ended->code, 7);
}

TEST_F(ChildProcessTest, EndsWithWhoeverStartedIt) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const pid_t parent = ::fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    EventLoop own;
    const auto started = ChildProcess::start(own, script("exec sleep 1000"));
    const pid_t id = started ? started->process.pid() : 0;
    [[maybe_unused]] const ssize_t told = ::write(ends[1], &id, sizeof id);
    ::kill(::getpid(), SIGKILL);
  }
  pid_t orphan = 0;
  ASSERT_EQ(::read(ends[0], &orphan, sizeof orphan), static_cast<ssize_t>(sizeof orphan));
  ::close(ends[0]);
  ::close(ends[1]);
  ASSERT_GT(orphan, 0);
  ::waitpid(parent, nullptr, 0);
  EXPECT_TRUE(dies(orphan));
}

TEST_F(ChildProcessTest, RelativeEntriesOfPathAreSeenFromWhereItRuns) {
  const std::filesystem::path root =
      std::filesystem::path(::testing::TempDir()) / ("child_path_" + std::to_string(::getpid()));
  std::filesystem::create_directories(root / "bin");
  std::filesystem::create_symlink("/bin/echo", root / "bin" / "own-program");
  const ChildCommand command{.arguments = {"own-program", "hello"},
                             .environment = {{"PATH", "bin:/usr/bin"}},
                             .directory = root};
  start(command);
  EXPECT_EQ(line(), "hello");
  ChildCommand elsewhere = command;
  elsewhere.directory = root / "bin";
  const auto missing = ChildProcess::start(*loop, elsewhere);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "There is no program \"own-program\" in PATH");
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace sluice

#include "net/loop/unix_socket.hpp"

#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

namespace sluice {
namespace {

using ::testing::HasSubstr;

class UnixSocketTest : public ::testing::Test {
 protected:
  UnixSocketTest() {
    std::string name = (std::filesystem::temp_directory_path() / "sluice-unix-XXXXXX").string();
    folder = ::mkdtemp(name.data());
    path = folder + "/socket";
  }
  ~UnixSocketTest() override { std::filesystem::remove_all(folder); }

  static mode_t mode_of(const std::string& path) {
    struct stat status{};
    EXPECT_EQ(::lstat(path.c_str(), &status), 0);
    return status.st_mode & 07777U;
  }
  Descriptor connect() const {
    Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      socket.close();
    }
    return socket;
  }

  std::string folder;
  std::string path;
};

TEST_F(UnixSocketTest, HasTheModeWhateverTheUmask) {
  for (const mode_t umask : {0U, 022U, 077U}) {
    const mode_t before = ::umask(umask);
    for (const mode_t mode : {0600U, 0660U, 0666U}) {
      const Result<UnixListener> listener = UnixListener::listen(path, mode);
      ASSERT_TRUE(listener) << listener.error().message;
      EXPECT_EQ(mode_of(path), mode);
    }
    ::umask(before);
  }
}

TEST_F(UnixSocketTest, IsRemovedAtTheEnd) {
  {
    const Result<UnixListener> listener = UnixListener::listen(path, 0600);
    EXPECT_TRUE(connect());
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(UnixSocketTest, LeavesWhatSomebodyElsePutThere) {
  {
    const Result<UnixListener> listener = UnixListener::listen(path, 0600);
    std::filesystem::remove(path);
    std::ofstream(path) << "mine";
  }
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(UnixSocketTest, ALiveOneIsRefusedAndLeftAlone) {
  const Result<UnixListener> first = UnixListener::listen(path, 0600);
  const Result<UnixListener> second = UnixListener::listen(path, 0600);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("another program listens there"));
  EXPECT_TRUE(connect());
}

TEST_F(UnixSocketTest, AStaleOneIsReplaced) {
  {
    Result<UnixListener> listener = UnixListener::listen(path, 0600);
    const Descriptor dead = listener->take_socket();
    // As after a kill: the path stays behind.
    std::filesystem::rename(path, path + ".kept");
  }
  std::filesystem::rename(path + ".kept", path);
  ASSERT_FALSE(connect());
  const Result<UnixListener> listener = UnixListener::listen(path, 0600);
  ASSERT_TRUE(listener) << listener.error().message;
  EXPECT_TRUE(connect());
}

TEST_F(UnixSocketTest, WhoKeepsTheFolderLockedKeepsNobodyFromListening) {
  const Descriptor other(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
  const Result<UnixListener> listener = UnixListener::listen(path, 0600);
  ASSERT_TRUE(listener) << listener.error().message;
  EXPECT_TRUE(connect());
}

TEST_F(UnixSocketTest, WhatIsNoSocketIsNotReplaced) {
  std::ofstream(path) << "mine";
  const Result<UnixListener> listener = UnixListener::listen(path, 0600);
  ASSERT_FALSE(listener);
  EXPECT_THAT(listener.error().message, HasSubstr("no socket"));
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(UnixSocketTest, SaysWhatIsWrongWithAPath) {
  EXPECT_THAT(UnixListener::listen(folder + "/none/socket", 0600).error().message,
              HasSubstr("No such file"));
  EXPECT_THAT(UnixListener::listen(std::string(108, 'x'), 0600).error().message,
              HasSubstr("107 bytes"));
}

TEST_F(UnixSocketTest, KnowsWhoIsThere) {
  Result<UnixListener> listener = UnixListener::listen(path, 0600);
  const Descriptor client = connect();
  const Descriptor socket = listener->take_socket();
  const Descriptor accepted(::accept4(socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_EQ(peer_user(accepted).value(), ::getuid());
}

}  // namespace
}  // namespace sluice

#include "client/authorization/file_lock.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <utility>

#include "core/log/log.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {
namespace {

constexpr Duration kFirstLockPause = std::chrono::milliseconds(2);
constexpr Duration kLongestLockPause = std::chrono::milliseconds(50);
/// How long somebody waits before they are told why.
constexpr Duration kSilence = std::chrono::seconds(1);

}  // namespace

void make_private_folder(const std::string& path) {
  std::filesystem::path folder;
  for (const auto& name : std::filesystem::path(path).parent_path()) {
    folder /= name;
    ::mkdir(folder.c_str(), S_IRWXU);
  }
}

class FileLock::Wait final : public std::enable_shared_from_this<Wait> {
 public:
  Wait(Executor& loop, std::string path, Duration patience, Done done)
      : loop_(&loop),
        path_(std::move(path)),
        until_(loop.clock().now() + patience),
        tells_at_(loop.clock().now() + kSilence),
        done_(std::move(done)) {}
  void begin() {
    loop_->post([self = shared_from_this()] { self->try_once(); });
  }

 private:
  void try_once() {
    if (path_.empty()) return finish(FileLock());
    if (!file_) {
      make_private_folder(path_);
      file_ = Descriptor(
          ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
      if (!file_) return refuse();
    }
    if (::flock(file_.get(), LOCK_EX | LOCK_NB) == 0) {
      return finish(FileLock(std::exchange(file_, Descriptor())));
    }
    if (errno != EWOULDBLOCK && errno != EINTR) return refuse();
    const TimePoint now = loop_->clock().now();
    if (now >= until_) {
      return finish(fail(kGatewayTimeout,
                         "Another process has held the lock " + path_ +
                             " for too long: is it waiting for a login that nobody finishes?"));
    }
    if (now >= tells_at_) {
      tells_at_ = TimePoint::max();
      log_warning("another process logs in or renews a token; this one waits for it",
                  {{"lock", std::string_view(path_)}});
    }
    loop_->schedule_at(std::min(now + pause_, until_),
                       [self = shared_from_this()] { self->try_once(); });
    pause_ = std::min(2 * pause_, kLongestLockPause);
  }
  void refuse() {
    finish(fail(kInternalServerError,
                "The lock " + path_ + " cannot be had: " + std::strerror(errno)));
  }
  void finish(Result<FileLock> outcome) { std::exchange(done_, {})(std::move(outcome)); }

  Executor* loop_;
  const std::string path_;
  const TimePoint until_;
  TimePoint tells_at_;
  Done done_;
  Descriptor file_;
  Duration pause_ = kFirstLockPause;
};

void FileLock::acquire(Executor& loop, std::string path, Duration patience, Done done) {
  std::make_shared<Wait>(loop, std::move(path), patience, std::move(done))->begin();
}

}  // namespace sluice

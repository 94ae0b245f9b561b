#include "net/process/child_process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <limits>
#include <optional>
#include <poll.h>
#include <string_view>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "core/crypto/random.hpp"
#include "net/process/descendants.hpp"
#include "net/process/pidfd.hpp"

extern char** environ;

namespace sluice {
namespace {

/// The environment variable that marks a child and its descendants begins so. Each child has one of
/// its own beside those of its parents, which find it by theirs.
constexpr std::string_view kMark = "SLUICE_CHILD_";
/// How long a child may take to become the program or to say that it cannot, in milliseconds.
constexpr int kToldWithin = 1000;
/// How often the end of a child is looked for where the kernel cannot report it (before Linux 5.3).
constexpr Duration kLookEvery = std::chrono::milliseconds(50);
/// The first pause before what a child has left behind is looked for again; each is twice as long
/// as the one before, up to the last.
constexpr Duration kFirstRest = std::chrono::milliseconds(1);
constexpr Duration kLastRest = std::chrono::seconds(1);

std::unexpected<Error> refused(std::string what, int error) {
  return fail(500, std::move(what) + ": " + std::strerror(error));
}

struct Pipe {
  Descriptor read;
  Descriptor write;
};

/// Each end is at least `lowest`, so that both can become descriptors of the child below that.
Result<Pipe> make_pipe(int lowest) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return refused("Cannot make a pipe", errno);
  Pipe pipe{Descriptor(ends[0]), Descriptor(ends[1])};
  for (Descriptor* const end : {&pipe.read, &pipe.write}) {
    if (end->get() >= lowest) continue;
    const int moved = ::fcntl(end->get(), F_DUPFD_CLOEXEC, lowest);
    if (moved < 0) return refused("Cannot make a pipe", errno);
    *end = Descriptor(moved);
  }
  return pipe;
}

void set_non_blocking(const Descriptor& end) {
  ::fcntl(end.get(), F_SETFL, ::fcntl(end.get(), F_GETFL) | O_NONBLOCK);
}

bool is_program(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

/// What exec needs. All of it is made before the child exists, which must not allocate.
struct Image {
  std::string path;
  std::string directory;
  std::vector<std::string> environment;
  std::vector<char*> argv;
  std::vector<char*> envp;
  std::vector<Descriptor> given;  // none is one of those that they become

  [[nodiscard]] int end_of_given() const {
    return ChildCommand::kFirstGiven + static_cast<int>(given.size());
  }
};

std::vector<std::string> environment_of(const ChildCommand& command, const std::string& mark) {
  std::vector<std::string> all;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view text(*each);
    const std::string_view name = text.substr(0, text.find('='));
    const bool is_replaced = std::ranges::any_of(
        command.environment, [name](const auto& own) { return own.first == name; });
    if (!is_replaced) all.emplace_back(text);
  }
  for (const auto& [name, value] : command.environment) {
    std::string text = name;
    all.push_back(text.append("=").append(value));
  }
  all.push_back(mark);
  return all;
}

/// Searches the directories of the child's PATH, as seen from where it runs.
std::string find_program(const std::string& name, const std::vector<std::string>& environment,
                         const std::string& directory_of_child) {
  if (name.find('/') != std::string::npos) return name;
  std::string_view path = "/usr/local/bin:/usr/bin:/bin";
  for (const std::string& each : environment) {
    if (each.starts_with("PATH=")) path = std::string_view(each).substr(5);
  }
  while (true) {
    const std::size_t end = path.find(':');
    const std::string_view directory = path.substr(0, end);
    std::string candidate(directory.empty() ? "." : directory);
    candidate.append("/").append(name);
    if (is_program(std::filesystem::path(directory_of_child) / candidate)) return candidate;
    if (end == std::string_view::npos) return {};
    path.remove_prefix(end + 1);
  }
}

Result<Image> prepare(const ChildCommand& command, const std::string& mark) {
  if (command.arguments.empty() || command.arguments[0].empty()) {
    return fail(400, "There is no program to start");
  }
  Image image{.path = {},
              .directory = command.directory,
              .environment = environment_of(command, mark),
              .argv = {},
              .envp = {},
              .given = {}};
  const auto has_null = [](const std::string& text) { return text.contains('\0'); };
  if (std::ranges::any_of(command.arguments, has_null) ||
      std::ranges::any_of(image.environment, has_null) || has_null(command.directory)) {
    return fail(400, "A command must not contain a null character");
  }
  const std::string& name = command.arguments[0];
  image.path = find_program(name, image.environment, command.directory);
  if (image.path.empty()) return fail(400, "There is no program \"" + name + "\" in PATH");
  if (std::error_code error;
      !command.directory.empty() && !std::filesystem::is_directory(command.directory, error)) {
    return fail(400, "There is no directory " + command.directory);
  }
  // exec takes pointers to char, but does not change what they point to.
  for (const std::string& each : command.arguments) {
    image.argv.push_back(const_cast<char*>(each.c_str()));
  }
  for (const std::string& each : image.environment) {
    image.envp.push_back(const_cast<char*>(each.c_str()));
  }
  image.argv.push_back(nullptr);
  image.envp.push_back(nullptr);
  const int free = ChildCommand::kFirstGiven + static_cast<int>(command.descriptors.size());
  for (const int each : command.descriptors) {
    Descriptor copy(::fcntl(each, F_DUPFD_CLOEXEC, free));
    if (!copy) return refused("Cannot pass on an open file", errno);
    image.given.push_back(std::move(copy));
  }
  return image;
}

/// Runs in the child. It shares the parent's memory, so this makes system calls only. Returns
/// errno, if the program cannot be started.
int become(const Image& image, int input, int output, int errors, pid_t parent) {
  // A session of its own has no terminal. As a background group of ours, a program that asks for a
  // password there would be stopped, and the shell would read what is typed.
  if (::setsid() < 0 || ::prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) return errno;
  if (::getppid() != parent) return ECANCELED;
  if (::dup2(input, STDIN_FILENO) < 0 || ::dup2(output, STDOUT_FILENO) < 0 ||
      (errors >= 0 && ::dup2(errors, STDERR_FILENO) < 0)) {
    return errno;
  }
  int next = ChildCommand::kFirstGiven;
  for (const Descriptor& each : image.given) {
    if (::dup2(each.get(), next++) < 0) return errno;
  }
  // Descriptors of the program around us that would stay open in the child.
  ::syscall(SYS_close_range, next, std::numeric_limits<unsigned>::max(), CLOSE_RANGE_CLOEXEC);
  if (!image.directory.empty() && ::chdir(image.directory.c_str()) != 0) return errno;
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &standard, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(image.path.c_str(), image.argv.data(), image.envp.data());
  return errno;
}

/// Returns the child's id, or -errno. `told` carries the errno of a child that fails.
pid_t spawn(const Image& image, int input, int output, int errors, Pipe& told) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  // No handler of this process must run in the child.
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t parent = ::getpid();
  // The parent's page tables are not copied, and the parent waits until the child has become
  // another program.
  const pid_t child = ::vfork();
  if (child == 0) {
    const int failed = become(image, input, output, errors, parent);
    [[maybe_unused]] const ssize_t written = ::write(told.write.get(), &failed, sizeof failed);
    ::_exit(127);
  }
  const int refused = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (child < 0) return -refused;
  told.write.close();
  // A process that another thread forks off meanwhile may hold the other end as long as it lives.
  pollfd end{.fd = told.read.get(), .events = POLLIN, .revents = 0};
  if (::poll(&end, 1, kToldWithin) == 0) return child;
  int failed = 0;
  ssize_t got = 0;
  while ((got = ::read(told.read.get(), &failed, sizeof failed)) < 0 && errno == EINTR) {
  }
  if (got != sizeof failed) return child;
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return -failed;
}

ExitStatus status_of(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) return {.code = info.si_status, .signal = 0};
  return {.code = 0, .signal = info.si_status};
}

}  // namespace

std::string ExitStatus::describe() const {
  if (signal == 0) return "it has ended with code " + std::to_string(code);
  const char* const name = ::sigabbrev_np(signal);
  return "it was ended by " +
         (name == nullptr ? "signal " + std::to_string(signal) : std::string("SIG") + name);
}

/// Owned by the ChildProcess; afterwards by the timer of its next deadline.
class ChildProcess::Running final : public std::enable_shared_from_this<Running>,
                                    private EventLoop::Watcher {
 public:
  Running(EventLoop& loop, pid_t process, std::string mark, ChildDeadlines deadlines)
      : loop_(&loop),
        pid_(process),
        descriptor_(open_pidfd(process)),
        descendants_(process, std::move(mark)),
        deadlines_(deadlines) {}
  ~Running() override {
    const bool looks_again = looking_ != 0;
    ignore();
    if (!status_) {
      kill_all();
    } else if (looks_again) {
      kill_at_once();
    }
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  void watch() {
    if (descriptor_) {
      loop_->watch(descriptor_.get(), *this);
      is_watched_ = true;
    } else {
      look_later();
    }
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  void on_exit(std::function<void(ExitStatus)> task) {
    task_ = std::move(task);
    if (status_) loop_->post([self = shared_from_this()] { self->tell(); });
  }
  void stop() {
    if (status_ || next_signal_ != 0) return;
    next_signal_ = SIGTERM;
    wait(deadlines_.after_input);
  }
  void forget_task() { task_ = nullptr; }

 private:
  void on_ready(std::uint32_t /*events*/) override { look(); }

  void wait(Duration time) {
    timer_ = loop_->schedule_at(loop_->clock().now() + time,
                                [self = shared_from_this()] { self->send_signal(); });
  }
  void send_signal() {
    timer_ = 0;
    was_signalled_ = true;
    ::kill(-pid_, next_signal_);
    if (next_signal_ == SIGKILL) {
      // Keeps this until the kernel has reported the end.
      wait(deadlines_.after_term);
      return;
    }
    next_signal_ = SIGKILL;
    wait(deadlines_.after_term);
  }

  /// Looks whether the child has ended.
  void look() {
    siginfo_t info{};
    const int looked = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
    // The kernel does not keep the end of a child if SIGCHLD is ignored (wait(2)).
    const bool is_forgotten = looked != 0 && errno == ECHILD;
    if (!is_forgotten && (looked != 0 || info.si_pid != pid_)) return;
    const std::shared_ptr<Running> keep = shared_from_this();
    status_ = is_forgotten ? ExitStatus() : status_of(info);
    status_->was_signalled = was_signalled_;
    // If there is an end to reap: before its id is free for another process.
    kill_group_and_reap();
    ignore();
    kill_rest(kFirstRest);
    tell();
  }
  /// Kills what the child has left behind, and looks again after a pause as long as some process is
  /// in the middle of exec. That takes microseconds, unless its files are slow.
  void kill_rest(Duration pause) {
    // The program may end before there is time to look again.
    if (!(pause == kFirstRest ? kill_at_once() : descendants_.kill()) || pause > kLastRest) return;
    looking_ = loop_->schedule_at(loop_->clock().now() + pause, [self = shared_from_this(), pause] {
      self->looking_ = 0;
      self->kill_rest(2 * pause);
    });
  }
  void tell() {
    if (const auto task = std::exchange(task_, {})) task(*status_);
  }
  void look_later() {
    looking_ = loop_->schedule_at(loop_->clock().now() + kLookEvery, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      self->look();
      if (!self->status_) self->look_later();
    });
  }
  void kill_group_and_reap() {
    ::kill(-pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  /// Ends it without the loop. SIGKILL takes effect at once, unless the process is in the kernel.
  void kill_all() {
    ::kill(-pid_, SIGKILL);
    for (int tries = 0; tries < 100; ++tries) {
      const pid_t reaped = ::waitpid(pid_, nullptr, WNOHANG);
      if (reaped == pid_ || (reaped < 0 && errno != EINTR)) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    kill_at_once();
  }
  /// As kill_marked(), but waits for a process in the middle of exec for some milliseconds.
  bool kill_at_once() {
    for (int looks = 0; looks < 10; ++looks) {
      if (!descendants_.kill()) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }
  void ignore() {
    if (std::exchange(is_watched_, false)) loop_->unwatch(descriptor_.get(), *this);
    if (timer_ != 0) loop_->cancel(std::exchange(timer_, 0));
    if (looking_ != 0) loop_->cancel(std::exchange(looking_, 0));
  }

  EventLoop* loop_;
  const pid_t pid_;
  Descriptor descriptor_;  // of the process; none before Linux 5.3
  const Descendants descendants_;
  ChildDeadlines deadlines_;
  std::function<void(ExitStatus)> task_;
  Executor::TimerId timer_ = 0;
  Executor::TimerId looking_ = 0;
  int next_signal_ = 0;  // 0: it is not being ended
  bool was_signalled_ = false;
  bool is_watched_ = false;
  std::optional<ExitStatus> status_;  // once it has ended
};

Result<ChildProcess::Started> ChildProcess::start(EventLoop& loop, const ChildCommand& command,
                                                  ChildDeadlines deadlines) {
  std::string mark = std::string(kMark) + random_id(16) + "=1";
  const Result<Image> image = prepare(command, mark);
  if (!image) return std::unexpected(image.error());
  const int lowest = image->end_of_given();
  Result<Pipe> input = make_pipe(lowest);
  if (!input) return std::unexpected(std::move(input.error()));
  Result<Pipe> output = make_pipe(lowest);
  if (!output) return std::unexpected(std::move(output.error()));
  Descriptor nothing;
  if (command.discards_errors) nothing = Descriptor(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  Result<Pipe> told = make_pipe(lowest);
  if (!told) return std::unexpected(std::move(told.error()));
  const pid_t child =
      spawn(*image, input->read.get(), output->write.get(), nothing ? nothing.get() : -1, *told);
  if (child < 0) {
    const int error = -child;
    const bool is_wrong = error == ENOENT || error == EACCES || error == ENOEXEC || error == E2BIG;
    return fail(is_wrong ? 400 : 500, "Cannot start " + image->path + ": " + std::strerror(error));
  }
  auto running = std::make_shared<Running>(loop, child, std::move(mark), deadlines);
  running->watch();
  set_non_blocking(input->write);
  set_non_blocking(output->read);
  return Started{ChildProcess(std::move(running)), std::move(input->write),
                 std::move(output->read)};
}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(running_, other.running_);
  return *this;
}

ChildProcess::~ChildProcess() {
  if (running_ == nullptr) return;
  running_->forget_task();
  running_->stop();
}

pid_t ChildProcess::pid() const {
  return running_->pid();
}

void ChildProcess::on_exit(std::function<void(ExitStatus)> task) {
  running_->on_exit(std::move(task));
}

void ChildProcess::stop() {
  running_->stop();
}

void ChildProcess::finish(std::function<void(ExitStatus)> task) && {
  const std::shared_ptr<Running> running = std::exchange(running_, nullptr);
  running->on_exit(std::move(task));
  running->stop();
}

}  // namespace sluice

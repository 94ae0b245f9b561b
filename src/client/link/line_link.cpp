#include "client/link/line_link.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <system_error>
#include <tuple>
#include <utility>

#include "client/link/last_words.hpp"
#include "client/link/nobody.hpp"
#include "core/release_memory.hpp"
#include "net/io/descriptor_io.hpp"
#include "net/io/queued_memory.hpp"
#include "net/lines/line_reader.hpp"
#include "net/loop/unix_socket.hpp"

namespace sluice {
namespace {

constexpr std::size_t kReadSize = std::size_t{64} << 10U;
/// How long it reads in a turn of the loop, so that a server that never stops keeps nothing else
/// from running, however short its messages are.
constexpr Duration kReadFor = std::chrono::milliseconds(1);
/// Once this much of the output has been sent, the rest is moved to the front.
constexpr std::size_t kWorthMoving = std::size_t{64} << 10U;

}  // namespace

OpenLines start_child(EventLoop& loop, ChildCommand command, ChildDeadlines deadlines) {
  return [&loop, command = std::move(command), deadlines]() -> Result<LineEnds> {
    Result<ChildProcess::Started> started = ChildProcess::start(loop, command, deadlines);
    if (!started) return std::unexpected(std::move(started.error()));
    return LineEnds{.input = std::move(started->output),
                    .output = std::move(started->input),
                    .process = std::move(started->process)};
  };
}

OpenLines connect_unix(std::string path) {
  return [path = std::move(path)]() -> Result<LineEnds> {
    Result<Descriptor> socket = connect_unix_socket(path);
    if (!socket) return std::unexpected(std::move(socket.error()));
    return LineEnds{.input = std::move(*socket), .output = {}};
  };
}

/// An open connection. Owned by its link, and by the tasks that it has posted.
class LineLink::Lines final : public std::enable_shared_from_this<Lines> {
 public:
  Lines(EventLoop& loop, LineEnds ends, const LineLinkLimits& limits)
      : loop_(&loop),
        ends_(std::move(ends)),
        source_(ends_.input.get()),
        sink_(output().get()),
        reader_(limits.max_message),
        too_long_(kBusy, "it is longer than " + std::to_string(limits.max_message) + " bytes") {}
  ~Lines() {
    // Only if the loop is gone; then nobody waits.
    std::ignore = last_words_.end();
    close();
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  /// From now on `owner` is told. Null: it is not any more.
  void tell(Owner* owner) { owner_ = owner; }
  [[nodiscard]] bool is_open() const { return is_open_; }

  /// Returns false if the kernel cannot watch the descriptors.
  bool watch() {
    try {
      loop_->watch(ends_.input.get(), input_side_);
      is_open_ = true;
      if (ends_.output) loop_->watch(ends_.output.get(), output_side_);
    } catch (const std::system_error&) {
      close();
      return false;
    }
    if (ends_.process) {
      ends_.process->on_exit([weak = weak_from_this()](ExitStatus how) {
        const auto self = weak.lock();
        if (self == nullptr) return;
        self->has_ended_ = true;
        self->how_ended_ = how.describe();
        // What it has said before comes first.
        self->read();
      });
    }
    return true;
  }

  [[nodiscard]] std::size_t queued() const { return out_.size() - sent_; }
  void send(const OutgoingMessage& message) {
    out_.append(message.text).push_back('\n');
    memory_.keep(message.memory, left_ + queued());
    write_later();
  }

  /// Reads nothing more while it is paused.
  void pause(bool is_paused) {
    if (std::exchange(is_paused_, is_paused) && !is_paused) read_later();
  }

  /// Sends what was to be sent, for at most LastWords::kLimit, and waits for the end of the
  /// process. Nobody is told of anything but that.
  void finish(std::function<void()> done) {
    owner_ = nullptr;
    pause(false);
    write();
    // What it says meanwhile is still read, or it might wait for that instead of reading.
    last_words_.begin(std::move(done), [self = shared_from_this()] { self->leave(); });
    if (!is_open_ || queued() == 0) leave();
  }

  /// Ends the connection, and the process with it. Nobody is told. What was sent in this turn
  /// leaves first, as far as the kernel takes it at once.
  void close() {
    write();
    if (std::exchange(is_open_, false)) {
      loop_->unwatch(ends_.input.get(), input_side_);
      if (ends_.output) loop_->unwatch(ends_.output.get(), output_side_);
    }
    memory_.clear();
    ends_.input.close();
    ends_.output.close();
    ends_.process.reset();
  }

 private:
  struct Side final : EventLoop::Watcher {
    explicit Side(Lines& of) : lines(&of) {}
    void on_ready(std::uint32_t events) override { lines->on_ready(*this, events); }
    Lines* lines;
  };

  [[nodiscard]] const Descriptor& output() const {
    return ends_.output ? ends_.output : ends_.input;
  }
  void on_ready(const Side& side, std::uint32_t events) {
    const std::shared_ptr<Lines> keep = shared_from_this();
    if ((events & EPOLLOUT) != 0) write();
    if (&side == &input_side_ && (events & ~std::uint32_t{EPOLLOUT}) != 0) read();
  }

  void leave() {
    const std::shared_ptr<Lines> keep = shared_from_this();
    const std::function<void()> done = last_words_.end();
    std::optional<ChildProcess> process = std::exchange(ends_.process, {});
    close();
    if (!process) return done();
    std::move(*process).finish([done](ExitStatus) { done(); });
  }

  /// Several messages of one turn are sent together.
  void write_later() {
    if (std::exchange(writes_later_, true)) return;
    loop_->post([weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      self->writes_later_ = false;
      self->write();
    });
  }
  void write() {
    while (is_open_ && sent_ < out_.size()) {
      const iovec part{out_.data() + sent_, out_.size() - sent_};
      const IoResult result = sink_.write({&part, 1});
      sent_ += result.bytes;
      left_ += result.bytes;
      if (result.status == IoStatus::want_write) break;
      // A server that has gone is noticed where it is read, with all that it has said.
      if (result.status != IoStatus::ok) {
        left_ += queued();
        sent_ = out_.size();
        break;
      }
    }
    memory_.release(left_);
    if (sent_ == out_.size()) {
      if (out_.capacity() > kWorthMoving) release_memory(out_);
      out_.clear();
      sent_ = 0;
    } else if (sent_ >= kWorthMoving && sent_ >= out_.size() / 2) {
      out_.erase(0, sent_);
      sent_ = 0;
    }
    if (last_words_.have_begun() && queued() == 0) leave();
  }

  void read() {
    if (reads_later_) return;
    const std::shared_ptr<Lines> keep = shared_from_this();
    const TimePoint until = loop_->clock().now() + kReadFor;
    std::array<char, kReadSize> buffer;
    while (is_open_) {
      if (!pass_lines(until)) return read_later();
      if (!is_open_ || is_paused_) return;
      if (has_said_all_) return end(ends_.peer + " has closed the connection");
      const IoResult result = source_.read(buffer);
      if (result.status == IoStatus::want_read && !has_ended_) return;
      if (result.status == IoStatus::failed) {
        // A line that has no end yet has been cut off.
        return end("the connection to " + ends_.peer + " failed: " + std::strerror(errno));
      }
      if (result.status == IoStatus::ok) {
        reader_.append({buffer.data(), result.bytes});
      } else {
        reader_.end();
        has_said_all_ = true;
      }
    }
  }
  void read_later() {
    reads_later_ = true;
    // A turn of the loop may run several rounds of posted tasks, but a timer once.
    loop_->schedule_at(loop_->clock().now(), [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      self->reads_later_ = false;
      self->read();
    });
  }
  /// Returns false if it is `until` before all lines are passed on.
  bool pass_lines(TimePoint until) {
    while (is_open_ && !is_paused_) {
      if (loop_->clock().now() >= until) return false;
      const LineReader::Next next = reader_.next();
      if (next.kind == LineReader::Next::Kind::none) return true;
      if (next.kind == LineReader::Next::Kind::too_long) {
        if (owner_ != nullptr) owner_->on_unreadable(next.line, too_long_);
      } else if (owner_ != nullptr) {
        owner_->on_message(next.line);
      }
    }
    return true;
  }

  /// The server says nothing more. Of a process, it is known soon how it ends.
  void end(std::string_view why) {
    if (!is_open_) return;
    if (last_words_.have_begun()) return leave();
    if (!ends_.process || has_ended_) return lose(why);
    loop_->unwatch(ends_.input.get(), input_side_);
    if (ends_.output) loop_->unwatch(ends_.output.get(), output_side_);
    is_open_ = false;
    why_ended_ = why;
    ends_.output.close();
    ends_.process->on_exit([weak = weak_from_this()](ExitStatus how) {
      const auto self = weak.lock();
      if (self == nullptr) return;
      // A server that had to be ended has not ended by itself.
      if (!how.was_signalled) self->how_ended_ = how.describe();
      self->lose(self->why_ended_);
    });
    ends_.process->stop();
  }
  void lose(std::string_view why) {
    Owner* const owner = std::exchange(owner_, nullptr);
    close();
    const std::string message =
        how_ended_.empty() ? std::string(why) : ends_.peer + "'s process is over: " + how_ended_;
    if (owner != nullptr) owner->on_lost({kLostConnection, message, {}});
  }

  EventLoop* loop_;
  LineEnds ends_;
  DescriptorIo source_;
  DescriptorIo sink_;
  LineReader reader_;
  const Error too_long_;
  Side input_side_{*this};
  Side output_side_{*this};
  Owner* owner_ = nullptr;
  std::string out_;
  std::size_t sent_ = 0;    // of out_
  std::uint64_t left_ = 0;  // bytes of all messages
  QueuedMemory memory_;     // of those that wait
  std::string how_ended_;   // the process
  std::string why_ended_;   // the connection, while the process is being ended
  bool is_open_ = false;
  bool writes_later_ = false;
  bool is_paused_ = false;
  bool reads_later_ = false;
  bool has_said_all_ = false;  // the server
  bool has_ended_ = false;     // the process
  LastWords last_words_{*loop_};
};

LineLink::LineLink(EventLoop& loop, OpenLines open, LineLinkLimits limits)
    : loop_(&loop), open_(std::move(open)), limits_(limits) {}

LineLink::~LineLink() {
  if (lines_ == nullptr) return;
  lines_->tell(nullptr);
  lines_->close();
}

void LineLink::close(std::function<void()> done) {
  const std::shared_ptr<Lines> lines = std::exchange(lines_, nullptr);
  lines == nullptr ? done() : lines->finish(std::move(done));
}

void LineLink::open(Owner& owner) {
  owner_ = &owner;
  const Result<void> opened = open_lines();
  if (opened) return;
  loop_->post([weak = std::weak_ptr(alive_), this, why = opened.error()] {
    if (!weak.expired()) owner_->on_lost(why);
  });
}

Result<void> LineLink::open_lines() {
  Result<LineEnds> ends = open_();
  if (!ends) return std::unexpected(std::move(ends.error()));
  lines_ = std::make_shared<Lines>(*loop_, std::move(*ends), limits_);
  if (!lines_->watch()) return fail(500, "The system cannot watch the connection");
  lines_->tell(owner_);
  return {};
}

bool LineLink::reopen() {
  if (lines_ != nullptr && lines_->is_open()) return true;
  return open_lines().has_value();
}

void LineLink::pause(const RequestId& id, bool is_paused) {
  const bool is_any_paused = paused_.set(id, is_paused);
  if (lines_ != nullptr) lines_->pause(is_any_paused);
}

Result<void> LineLink::send(OutgoingMessage message) {
  if (lines_ == nullptr || !lines_->is_open()) {
    return fail(kLostConnection, "There is no connection to the server");
  }
  const std::size_t queued = lines_->queued();
  if (queued > 0 && queued + message.text.size() > limits_.max_queued) {
    return fail(kBusy, "The server reads too slowly: " + std::to_string(queued) +
                           " bytes wait to be sent to it");
  }
  lines_->send(message);
  return {};
}

}  // namespace sluice
